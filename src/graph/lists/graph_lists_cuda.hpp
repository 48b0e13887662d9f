// The lists of a graph on a GPU, as builders see them there.
#pragma once

#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "graph/lists/graph_lists.hpp"
#include "graph/lists/pairs/pair_key_rows.hpp"
#include "graph/lists/working_lists_cuda.hpp"
#include "rows/device_rows.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// The rows of a collection while a graph of them is built: where they lie there already, or a copy, of which parts of
// one process bring a share each and take the others' from these; checked, and with their inverse norms for cosine.
// Memory: cols x size a row where they are copied; 8 bytes a row for cosine.
class GraphRowsCuda {
 public:
  GraphRowsCuda(std::shared_ptr<const DeviceContext> context, const MatrixView& x, const GraphRowsParams& params,
                const Resources& resources);

  const DeviceRowsView& rows() const { return rows_; }
  // The same as a matrix in the device's memory.
  const MatrixView& view() const { return view_; }
  int64_t cols() const { return view_.cols(); }

 private:
  void bring(std::shared_ptr<const DeviceContext> context, const GraphShare* share, const Resources& resources);

  DeviceBuffer matrix_;
  DeviceArray<double> norms_;
  MatrixView view_;
  DeviceRowsView rows_;
};

class GraphListsCuda final : public GraphLists {
 public:
  // `custom`: a metric of the user's in place of the params's, or null.
  GraphListsCuda(int device, const MatrixView& x, const GraphRowsParams& params, const custom::GraphMetric* custom,
                 const Resources& resources);

  Device device() const override { return Device::cuda(context_->device()); }
  const MatrixView& view() const override { return rows_.view(); }
  int64_t length() const override { return length_; }
  void begin(int64_t length) override;
  void resize(int64_t length) override;
  void add_random_rows(uint64_t seed, int64_t boundary) override;
  void add_rows(const NamedRows& rows) override;
  ListSurvey survey(int64_t k, Flags flags) override;
  void write(const NeighborsView& out, const RankPart& rows) override;
  // None of processes, which build graphs on GPUs alone.
  const GraphShare* share() const override { return share_; }
  void give_lists() override;
  std::optional<RecallEstimate> measure() override;
  int64_t control_rows() const override { return static_cast<int64_t>(control_.rows().size()); }

  // For the steps of a builder.
  const GraphRowsCuda& collection() const { return rows_; }
  PairKeyRows pairs() const { return {rows_.rows(), rows_.cols(), key_kind(metric_), custom_}; }
  DeviceWorkingLists lists() const { return {entries_.data(), rows(), length_}; }
  const ControlRows& control() const { return control_; }
  // The first so many of all rows for each query, in host memory: by all parts, where there are several.
  Neighbors search(const MatrixView& queries, int64_t most, const Resources& resources) const;
  const std::shared_ptr<const DeviceContext>& context() const { return context_; }
  const Resources& resources() const { return resources_; }

 private:
  ControlRows control_of(const GraphRowsParams& params) const;
  template <typename Use>
  void with_ends(const Use& use) const;
  cudaStream_t stream() const { return context_->stream(); }
  DeviceArray<uint64_t> list_memory(int64_t length) const {
    return DeviceArray<uint64_t>(rows() * length, "the lists of neighbours", context_, resources_);
  }

  const custom::GraphMetric* const custom_;
  DeviceGuard guard_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const Metric metric_;
  const GraphShare* const share_;
  GraphRowsCuda rows_;
  ControlRows control_;
  DeviceArray<uint32_t> control_numbers_;
  DeviceArray<uint64_t> entries_;
  int64_t length_ = 0;
};

// What lists begin with. Both wait, and keep the lists' ends right, which are right before. Beside the lists they take
// at most kStartBytes (start_rules.hpp), and kSetBytes more with a metric of the user's (pairs/custom_sets_cuda.hpp).

void add_random_rows_cuda(const PairKeyRows& rows, int64_t boundary, uint64_t seed, const DeviceListsRef& lists,
                          const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

// The ids are on the host or on this device.
void add_named_rows_cuda(const PairKeyRows& rows, const NamedRows& named, const DeviceListsRef& lists,
                         const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

}  // namespace kith
