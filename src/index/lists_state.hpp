// The state of an index of lists: what was learned, and segments of codes that are shared with the states before and
// after it.
#pragma once

#include "index/gpu_lists_cache.hpp"
#include "index/index_state.hpp"
#include "ivf/ivf_model.hpp"
#include "ivf/ivf_search.hpp"
#include "ivf/list_segment.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class ListsState final : public IndexState {
 public:
  using Model = std::shared_ptr<const IvfModel>;

  // `probes`: the default of a search; 0: kith chooses.
  ListsState(const IndexContent& content, const IndexParams& params, Model model, std::vector<Segment> segments,
             int64_t probes)
      : IndexState(content),
        params_(params),
        model_(std::move(model)),
        segments_(std::move(segments)),
        probes_(probes) {}

  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources) const override;
  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources) const override;
  int64_t smallest_host_bytes(const RowsInfo& queries, const SearchParams& params,
                              const Resources& resources) const override;
  void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const override;
  IndexBytes bytes() const override;
  void describe(IndexInfo& info) const override;
  void give_parts(IndexParts& parts, const Resources& resources) const override;

  const Model& model() const { return model_; }
  const std::vector<Segment>& segments() const { return segments_; }
  int64_t probes() const { return probes_; }

 private:
  int64_t probes_for(int64_t asked) const;
  Device device_for(const MatrixView& queries, const MemorySpace& out, int64_t probes,
                    const Resources& resources) const;
  void search_on_cpu(const MatrixView& queries, const IvfSearch& search, const NeighborsView& out,
                     const Resources& resources) const;
  void search_on_gpu(const GpuLists& lists, const MatrixView& queries, const IvfSearch& search, int64_t kept,
                     const NeighborsView& out, const Resources& resources) const;
  // Searches those again, with more lists, that have found fewer than `least`.
  void fill_up(const MatrixView& queries, const IvfSearch& search, int64_t least, const NeighborsView& out,
               const Resources& resources) const;
  int64_t codes_bytes() const;
  // All vectors as one segment, also where there are none.
  Segment whole(const Resources& resources) const;
  // The vectors of so many lists, at least.
  int64_t fewest_in(int64_t probes) const;

  const IndexParams params_;
  const Model model_;
  const std::vector<Segment> segments_;  // in the order of their rows
  const int64_t probes_;
  const GpuListsCache on_gpus_;
};

}  // namespace kith
