#include "graph/lists/graph_lists_cuda.hpp"

#include <kith/knn.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "cuda/row_upload.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "graph/lists/device_share_cuda.hpp"
#include "graph/lists/graph_share.hpp"
#include "graph/lists/pairs/custom_sets_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "rows/finite_check.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kWriteBytes = int64_t{64} << 20;  // of results on their way to the host

// Processes build graphs on GPUs alone.
const GraphShare* share_of_parts(const GraphRowsParams& params) {
  return params.share != nullptr && params.share->are_parts() ? params.share : nullptr;
}

}  // namespace

GraphRowsCuda::GraphRowsCuda(std::shared_ptr<const DeviceContext> context, const MatrixView& x,
                             const GraphRowsParams& params, const Resources& resources)
    : view_(x) {
  const int device = context->device();
  check_on_device(x, "base", device);
  if (!lies_on(x, device)) bring(context, share_of_parts(params), resources);
  rows_ = device_rows(view_);

  RowFindings findings;
  const DeviceArray<uint32_t> first(2, "the first bad row", context, resources);
  if (params.check_finite && can_be_infinite(x.dtype())) findings.first_bad = first.data();
  if (params.metric == Metric::chi_square) findings.first_negative = first.data() + 1;
  if (params.metric == Metric::cosine) {
    norms_ = DeviceArray<double>(x.rows(), "the rows' norms", context, resources);
    findings.inverse_norms = norms_.data();
  }
  if (!findings.wanted()) return;
  context->fill(first.data(), 0xFF, 2);
  inspect_rows(rows_, x.cols(), findings, context->stream());
  uint32_t bad[2] = {kNoBadRow, kNoBadRow};
  context->copy_values(bad, first.data(), 2);
  context->synchronize();
  if (bad[0] != kNoBadRow) throw_not_finite("base", bad[0]);
  if (bad[1] != kNoBadRow) throw_negative("base", bad[1]);
}

// In pieces, between which the copy can be cancelled.
void GraphRowsCuda::bring(std::shared_ptr<const DeviceContext> context, const GraphShare* share,
                          const Resources& resources) {
  constexpr int64_t kPieceBytes = int64_t{256} << 20;
  const MatrixView x = view_;
  const int64_t row_bytes = x.cols() * size_of(x.dtype());
  matrix_ = DeviceBuffer(x.rows() * row_bytes, "the rows", context, resources);
  const int64_t piece = std::max<int64_t>(kPieceBytes / std::max<int64_t>(row_bytes, 1), 1);
  RowUpload upload(wants_pinned(x.space(), x.rows() * row_bytes, resources), resources);
  const RankPart own = share == nullptr ? RankPart{0, x.rows()} : share->rows();
  ProgressMeter meter("copy", own.count, resources);
  for (int64_t first = own.first; first < own.end(); first += piece) {
    const MatrixView part = x.slice(first, std::min(piece, own.end() - first));
    upload.copy(part, matrix_.data() + first * row_bytes, context->stream(), meter);
    context->synchronize();
    meter.add(part.rows());
    meter.poll();
  }
  meter.finish();
  if (share != nullptr) give_on_device(*share, {matrix_.data(), row_bytes}, *context, resources);
  view_ = MatrixView(matrix_.data(), x.dtype(), {x.rows(), x.cols(), x.cols()}, MemorySpace::cuda(context->device()));
}

GraphListsCuda::GraphListsCuda(int device, const MatrixView& x, const GraphRowsParams& params,
                               const custom::GraphMetric* custom, const Resources& resources)
    : custom_(custom),
      guard_(device),
      context_(std::make_shared<const DeviceContext>(device, resources.options().stream)),
      // What is called from here works on the same stream.
      resources_(resources.with_device(Device::cuda(device)).with_stream(context_->stream())),
      metric_(params.metric),
      share_(share_of_parts(params)),
      rows_(context_, x, params, resources_),
      control_(control_of(params)),
      control_numbers_(control_rows(), "the control rows", context_, resources_) {
  context_->copy_values(control_numbers_.data(), control_.rows().data(), control_rows());
  context_->synchronize();
  if (custom != nullptr) check_symmetric_cuda(*custom, pairs(), params.seed, context_, resources_);
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
  for (const ListSurvey& part : found) all.add(part);
  return all;
}

void GraphListsCuda::write(const NeighborsView& out, const RankPart& wanted) {
  if (wanted.count == 0) return;
  if (!out.space.host_readable()) {
    const int64_t at = wanted.first * out.k;
    return launch_write_lists(lists(), metric_, wanted.first,
                              {out.ids + at, out.distances + at, wanted.count, out.k, out.space}, stream());
  }
  const int64_t piece = std::max<int64_t>(kWriteBytes / (12 * out.k), 1);
  const int64_t most = std::min(piece, wanted.count) * out.k;
  const DeviceArray<int64_t> ids(most, "results", context_, resources_);
  const DeviceArray<float> distances(most, "results", context_, resources_);
  for (int64_t first = wanted.first; first < wanted.end(); first += piece) {
    const int64_t count = std::min(piece, wanted.end() - first);
    const NeighborsView part{ids.data(), distances.data(), count, out.k, MemorySpace::cuda(context_->device())};
    launch_write_lists(lists(), metric_, first, part, stream());
    context_->copy_values(out.ids + first * out.k, part.ids, count * out.k);
    context_->copy_values(out.distances + first * out.k, part.distances, count * out.k);
  }
  context_->synchronize();
}

void GraphListsCuda::give_lists() {
  if (share_ != nullptr) join_on_device(*share_, lists(), true, context_, resources_);
}

std::optional<RecallEstimate> GraphListsCuda::measure() {
  const DeviceArray<uint64_t> some(control_rows() * length_, "the control rows' lists", context_, resources_);
  launch_gather_lists(lists(), control_numbers_.data(), control_rows(), some.data(), stream());
  const HostArray<uint64_t> found(control_rows() * length_, "the control rows' lists", resources_);
  context_->copy_values(found.data(), some.data(), some.size());
  context_->synchronize();
  if (counts_only(resources_)) return std::nullopt;
  return control_.measure(found.data(), length_);
}

Neighbors GraphListsCuda::search(const MatrixView& queries, int64_t most, const Resources& resources) const {
  if (share_ != nullptr) return share_->search(queries, rows_.view(), metric_, most, resources);
  return knn(queries, rows_.view(), {.k = most, .metric = metric_, .check_finite = false}, resources);
}

ControlRows GraphListsCuda::control_of(const GraphRowsParams& params) const {
  if (custom_ == nullptr) {
    return ControlRows(
        rows_.view(), params.metric, params.k, params.seed, resources_,
        [&](const MatrixView& queries, int64_t most, const Resources& used) { return search(queries, most, used); });
  }
  return ControlRows(rows_.view(), params.metric, params.k, params.seed, resources_,
                     [&](const MatrixView& queries, int64_t most, const Resources& used) {
                       return custom::knn_cuda(custom_->search, queries, rows_.view(),
                                               {.k = most, .check_finite = false}, used);
                     });
}

std::unique_ptr<GraphLists> make_graph_lists_cuda(int device, const MatrixView& x, const GraphRowsParams& params,
                                                  const custom::GraphMetric* custom, const Resources& resources) {
  return std::make_unique<GraphListsCuda>(device, x, params, custom, resources);
}

}  // namespace kith
