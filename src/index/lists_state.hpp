// The state of an index of lists: what was learned, and segments of codes that are shared with the states before and
// after it.
#pragma once

#include "index/index_state.hpp"
#include "ivf/model/ivf_model.hpp"
#include "ivf/search/gpu_lists.hpp"
#include "ivf/search/ivf_search.hpp"
#include "ivf/segment/segment_copies.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace kith {

class ListsState final : public IndexState {
 public:
  using Model = std::shared_ptr<const IvfModel>;

  // `probes`: the default of a search; 0: kith chooses.
  ListsState(const IndexContent& content, const IndexParams& params, Model model, Segments<SegmentCopies> segments,
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
  int64_t smallest_range_bytes(const RowsInfo& queries, const RangeSearchParams& params,
                               const Resources& resources) const override;
  int64_t reconstruct_bytes(int64_t count, const Resources& resources) const override;
  int64_t give_parts_bytes() const override;
  IndexBytes bytes() const override;
  void describe(IndexInfo& info, const LiveRows& live) const override;
  void give_parts(IndexParts& parts, const Resources& resources) const override;

  const Model& model() const { return model_; }
  const Segments<SegmentCopies>& segments() const { return segments_; }
  int64_t probes() const { return probes_; }

 private:
  int64_t probes_for(int64_t asked) const;
  int64_t copied_bytes() const;
  // The segments on the host.
  std::vector<Segment> on_host(const Resources& resources) const;
  Device device_for(const MatrixView& queries, const MemorySpace& out, int64_t probes,
                    const Resources& resources) const;
  void search_on_cpu(const MatrixView& queries, const IvfSearch& search, const NeighborsView& out,
                     const Resources& resources) const;
  void search_on_gpu(const GpuLists& lists, const MatrixView& queries, const IvfSearch& search, int64_t kept,
                     const NeighborsView& out, const Resources& resources) const;
  // Calls on_gpu(lists) where a GPU is to search, on_cpu() elsewhere; and there too where the choice was Kith's, data lies
  // on the host and the GPU has no room.
  template <typename OnCpu, typename OnGpu>
  void search_somewhere(Device device, bool data_on_host, const Resources& resources, const OnCpu& on_cpu,
                        const OnGpu& on_gpu) const;
  int64_t codes_bytes() const;  // on the host
  // Of the segments that no GPU has.
  int64_t bytes_to_come() const;
  // All vectors as one segment, also where there are none.
  Segment whole(const Resources& resources) const;
  // The vectors of so many lists, at least.
  int64_t fewest_in(int64_t probes) const;

  const IndexParams params_;
  const Model model_;
  const Segments<SegmentCopies> segments_;
  const int64_t probes_;
  mutable std::once_flag counted_;
  mutable std::vector<int64_t> fewest_;  // in the 1, 2, ... shortest lists; once it was asked for
};

}  // namespace kith
