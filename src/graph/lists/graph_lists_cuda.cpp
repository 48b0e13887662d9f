#include "graph/lists/graph_lists_cuda.hpp"

#include "core/host_array.hpp"
#include "graph/lists/list_passes_cuda.hpp"
#include "graph/lists/pairs/custom_sets_cuda.hpp"
#include "graph/lists/start_lists_cuda.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kWriteBytes = int64_t{64} << 20;  // of results on their way to the host

}  // namespace

GraphListsCuda::GraphListsCuda(int device, const MatrixView& x, const GraphRowsWish& wish,
                               const custom::GraphMetric* custom, const Resources& resources)
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

void GraphListsCuda::begin(int64_t length) {
  entries_ = {};  // the old ones go before the new ones come
  entries_ = list_memory(length);
  length_ = length;
  context_->fill(entries_.data(), 0xFF, entries_.size());
}

void GraphListsCuda::resize(int64_t length) {
  DeviceArray<uint64_t> resized = list_memory(length);
  launch_resize_lists(lists(), {resized.data(), rows(), length}, stream());
  entries_ = std::move(resized);
  length_ = length;
}

template <typename Use>
void GraphListsCuda::with_ends(const Use& use) const {
  const DeviceArray<uint64_t> ends(rows(), "the lists of neighbours", context_, resources_);
  const DeviceListsRef with_ends{lists(), ends.data()};
  launch_list_ends(with_ends, stream());
  use(with_ends);
}

void GraphListsCuda::add_random_rows(uint64_t seed, int64_t boundary) {
  with_ends(
      [&](const DeviceListsRef& lists) { add_random_rows_cuda(pairs(), boundary, seed, lists, context_, resources_); });
}

void GraphListsCuda::add_rows(const NamedRows& rows) {
  with_ends([&](const DeviceListsRef& lists) { add_named_rows_cuda(pairs(), rows, lists, context_, resources_); });
}

ListSurvey GraphListsCuda::survey(int64_t k, Flags flags) {
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

void GraphListsCuda::write(const NeighborsView& out) {
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

std::optional<RecallEstimate> GraphListsCuda::measure() {
  const DeviceArray<uint64_t> some(control_rows() * length_, "the control rows' lists", context_, resources_);
  launch_gather_lists(lists(), control_numbers_.data(), control_rows(), some.data(), stream());
  const HostArray<uint64_t> found(control_rows() * length_, "the control rows' lists", resources_);
  context_->copy_values(found.data(), some.data(), some.size());
  context_->synchronize();
  return control_.measure(found.data(), length_);
}

ControlRows GraphListsCuda::control_of(const GraphRowsWish& wish) const {
  if (custom_ == nullptr) return ControlRows(rows_.view(), wish.metric, wish.k, wish.seed, resources_);
  return ControlRows(rows_.view(), wish.metric, wish.k, wish.seed, resources_,
                     [&](const MatrixView& queries, int64_t most) {
                       return custom::knn_cuda(custom_->search, queries, rows_.view(),
                                               {.k = most, .check_finite = false}, resources_.with_progress({}));
                     });
}

std::unique_ptr<GraphLists> make_graph_lists_cuda(int device, const MatrixView& x, const GraphRowsWish& wish,
                                                  const Resources& resources) {
  return std::make_unique<GraphListsCuda>(device, x, wish, nullptr, resources);
}

std::unique_ptr<GraphLists> make_custom_lists_cuda(int device, const MatrixView& x, const GraphRowsWish& wish,
                                                   const custom::GraphMetric& metric, const Resources& resources) {
  return std::make_unique<GraphListsCuda>(device, x, wish, &metric, resources);
}

}  // namespace kith
