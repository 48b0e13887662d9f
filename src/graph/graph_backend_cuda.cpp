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
        control_numbers_(control_rows(), "the control rows", context_, resources_) {
    context_->copy_values(control_numbers_.data(), control_.rows().data(), control_rows());
    context_->synchronize();
    if (custom != nullptr) check_symmetric_cuda(*custom, pairs(), wish.seed, context_, resources_);
  }

  const MatrixView& view() const override { return rows_.view(); }
  int64_t list_length() const override { return length_; }

  void begin_lists(int64_t length) override {
    entries_ = {};  // the old ones go before the new ones come
    entries_ = list_memory(length);
    length_ = length;
    context_->fill(entries_.data(), 0xFF, entries_.size());
  }
  void resize_lists(int64_t length) override {
    DeviceArray<uint64_t> resized = list_memory(length);
    launch_resize_lists(lists(), {resized.data(), rows(), length}, stream());
    entries_ = std::move(resized);
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
    const DeviceArray<ListSurvey> parts(count, "a survey of the lists", context_, resources_);
    launch_survey_lists(lists(), k, metric_, flags, parts.data(), stream());
    const HostArray<ListSurvey> found(count, "a survey of the lists", resources_);
    context_->copy_values(found.data(), parts.data(), count);
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
    const DeviceArray<int64_t> ids(most, "results", context_, resources_);
    const DeviceArray<float> distances(most, "results", context_, resources_);
    for (int64_t first = 0; first < rows(); first += piece) {
      const int64_t count = std::min(piece, rows() - first);
      const NeighborsView part{ids.data(), distances.data(), count, out.k, MemorySpace::cuda(context_->device())};
      launch_write_lists(lists(), metric_, first, part, stream());
      context_->copy_values(out.ids + first * out.k, part.ids, count * out.k);
      context_->copy_values(out.distances + first * out.k, part.distances, count * out.k);
    }
    context_->synchronize();
  }

  std::optional<RecallEstimate> measure() override {
    const DeviceArray<uint64_t> some(control_rows() * length_, "the control rows' lists", context_, resources_);
    launch_gather_lists(lists(), control_numbers_.data(), control_rows(), some.data(), stream());
    const HostArray<uint64_t> found(control_rows() * length_, "the control rows' lists", resources_);
    context_->copy_values(found.data(), some.data(), some.size());
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
    return make_descent_steps_cuda(pairs(), rules, entries_.data(), length_, context_, resources_);
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
    const DeviceArray<uint64_t> ends(rows(), "the lists of neighbours", context_, resources_);
    const DeviceListsRef with_ends{lists(), ends.data()};
    launch_list_ends(with_ends, stream());
    use(with_ends);
  }
  cudaStream_t stream() const { return context_->stream(); }
  DeviceWorkingLists lists() const { return {entries_.data(), rows(), length_}; }
  DeviceArray<uint64_t> list_memory(int64_t length) const {
    return DeviceArray<uint64_t>(rows() * length, "the lists of neighbours", context_, resources_);
  }

  const custom::GraphMetric* const custom_;
  DeviceGuard guard_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const Metric metric_;
  GraphRowsCuda rows_;
  ControlRows control_;
  DeviceArray<uint32_t> control_numbers_;
  DeviceArray<uint64_t> entries_;
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
