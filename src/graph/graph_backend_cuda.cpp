#include "graph/graph_backend_cuda.hpp"

#include <kith/error.hpp>

#include "core/host_array.hpp"
#include "cuda/device_guard.hpp"
#include "graph/cells/cell_steps_cuda.hpp"
#include "graph/cells/cell_steps_host_cuda.hpp"
#include "graph/graph_rows_cuda.hpp"
#include "graph/list_passes_cuda.hpp"
#include "graph/nn_descent/custom_sets_cuda.hpp"
#include "graph/nn_descent/descent_steps_cuda.hpp"
#include "graph/nn_descent/start_lists_cuda.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kWriteBytes = int64_t{64} << 20;  // of results on their way to the host

class GraphBackendCuda final : public GraphBackend {
 public:
  // `custom`: a metric of the user's in place of the wish's, or null.
  GraphBackendCuda(int device, const MatrixView& x, const GraphRowsWish& wish, const custom::GraphMetric* custom,
                   const Resources& resources)
      : custom_(custom),
        guard_(device),
        context_(std::make_shared<const DeviceContext>(device, resources.options().stream)),
        // What is called from here works on the same stream.
        resources_(resources.with_device(Device::cuda(device)).with_stream(context_->stream())),
        metric_(wish.metric),
        rows_(context_, x, wish, resources_),
        control_(control_of(wish)),
        control_numbers_(control_rows() * 4, "the control rows", context_, resources_) {
    context_->copy(control_numbers_.data(), control_.rows().data(), control_rows() * 4);
    context_->synchronize();
    if (custom != nullptr) check_symmetric_cuda(*custom, pairs(), wish.seed, context_, resources_);
  }

  const MatrixView& view() const override { return rows_.view(); }
  int64_t list_length() const override { return length_; }

  void begin_lists(int64_t length) override {
    memory_ = DeviceBuffer();  // the old ones go before the new ones come
    memory_ = list_memory(length);
    length_ = length;
    KITH_CUDA_CHECK(cudaMemsetAsync(memory_.data(), 0xFF, static_cast<size_t>(8 * rows() * length), stream()));
  }
  void resize_lists(int64_t length) override {
    DeviceBuffer resized = list_memory(length);
    launch_resize_lists(lists(), {reinterpret_cast<uint64_t*>(resized.data()), rows(), length}, stream());
    memory_ = std::move(resized);
    length_ = length;
  }
  void add_random_rows(uint64_t seed, int64_t boundary) override {
    with_ends([&](const DeviceListsRef& lists) {
      add_random_rows_cuda(pairs(), boundary, seed, lists, context_, resources_);
    });
  }
  void add_rows(const NamedRows& rows) override {
    with_ends([&](const DeviceListsRef& lists) { add_named_rows_cuda(pairs(), rows, lists, context_, resources_); });
  }

  ListSurvey survey(int64_t k, Flags flags) override {
    const int64_t count = survey_parts(rows());
    const DeviceBuffer parts(array_bytes<ListSurvey>(count), "a survey of the lists", context_, resources_);
    launch_survey_lists(lists(), k, metric_, flags, reinterpret_cast<ListSurvey*>(parts.data()), stream());
    const HostArray<ListSurvey> found(count, "a survey of the lists", resources_);
    context_->copy(found.data(), parts.data(), parts.bytes());
    context_->synchronize();
    ListSurvey all;
    for (const ListSurvey& part : found) {
      all.phi += part.phi;
      all.updates += part.updates;
    }
    return all;
  }

  void write(const NeighborsView& out) override {
    if (!out.space.host_readable()) return launch_write_lists(lists(), metric_, 0, out, stream());
    const int64_t piece = std::max<int64_t>(kWriteBytes / (12 * out.k), 1);
    const int64_t most = std::min(piece, rows()) * out.k;
    const DeviceBuffer ids(8 * most, "results", context_, resources_);
    const DeviceBuffer distances(4 * most, "results", context_, resources_);
    for (int64_t first = 0; first < rows(); first += piece) {
      const int64_t count = std::min(piece, rows() - first);
      const NeighborsView part{reinterpret_cast<int64_t*>(ids.data()), reinterpret_cast<float*>(distances.data()), count,
                               out.k, MemorySpace::cuda(context_->device())};
      launch_write_lists(lists(), metric_, first, part, stream());
      context_->copy(out.ids + first * out.k, part.ids, 8 * count * out.k);
      context_->copy(out.distances + first * out.k, part.distances, 4 * count * out.k);
    }
    context_->synchronize();
  }

  std::optional<RecallEstimate> measure() override {
    const DeviceBuffer some(8 * control_rows() * length_, "the control rows' lists", context_, resources_);
    auto* const there = reinterpret_cast<uint64_t*>(some.data());
    launch_gather_lists(lists(), reinterpret_cast<const uint32_t*>(control_numbers_.data()), control_rows(), there,
                        stream());
    const HostArray<uint64_t> found(control_rows() * length_, "the control rows' lists", resources_);
    context_->copy(found.data(), there, some.bytes());
    context_->synchronize();
    return control_.measure(found.data(), length_);
  }
  int64_t control_rows() const override { return static_cast<int64_t>(control_.rows().size()); }

  std::unique_ptr<CellSteps> cut_cells(const CellParams& params, bool) override {
    if (!is_product(key_kind(metric_))) {
      return make_cell_steps_on_host(rows_, params, lists(), context_, resources_);
    }
    return make_cell_steps_cuda(rows_, params, control_, lists(), context_, resources_);
  }
  std::unique_ptr<DescentSteps> descent_steps(const DescentRules& rules) override {
    return make_descent_steps_cuda(pairs(), rules, reinterpret_cast<uint64_t*>(memory_.data()), length_, context_,
                                   resources_);
  }

 private:
  PairKeyRows pairs() const { return {rows_.rows(), rows_.cols(), key_kind(metric_), custom_}; }
  ControlRows control_of(const GraphRowsWish& wish) const {
    if (custom_ == nullptr) return ControlRows(rows_.view(), wish.metric, wish.k, wish.seed, resources_);
    return ControlRows(rows_.view(), wish.metric, wish.k, wish.seed, resources_,
                       [&](const MatrixView& queries, int64_t most) {
                         return custom::knn_cuda(custom_->search, queries, rows_.view(),
                                                 {.k = most, .check_finite = false}, resources_.with_progress({}));
                       });
  }
  template <typename Use>
  void with_ends(const Use& use) const {
    const DeviceBuffer ends(8 * rows(), "the lists of neighbours", context_, resources_);
    const DeviceListsRef with_ends{lists(), reinterpret_cast<uint64_t*>(ends.data())};
    launch_list_ends(with_ends, stream());
    use(with_ends);
  }
  cudaStream_t stream() const { return context_->stream(); }
  DeviceWorkingLists lists() const { return {reinterpret_cast<uint64_t*>(memory_.data()), rows(), length_}; }
  DeviceBuffer list_memory(int64_t length) const {
    return DeviceBuffer(8 * rows() * length, "the lists of neighbours", context_, resources_);
  }

  const custom::GraphMetric* const custom_;
  DeviceGuard guard_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const Metric metric_;
  GraphRowsCuda rows_;
  ControlRows control_;
  DeviceBuffer control_numbers_;
  DeviceBuffer memory_;
  int64_t length_ = 0;
};

}  // namespace

std::unique_ptr<GraphBackend> make_graph_backend_cuda(int device, const MatrixView& x, const GraphRowsWish& wish,
                                                      const Resources& resources) {
  return std::make_unique<GraphBackendCuda>(device, x, wish, nullptr, resources);
}

std::unique_ptr<GraphBackend> make_custom_graph_backend_cuda(int device, const MatrixView& x, const GraphRowsWish& wish,
                                                             const custom::GraphMetric& metric,
                                                             const Resources& resources) {
  return std::make_unique<GraphBackendCuda>(device, x, wish, &metric, resources);
}

}  // namespace kith
