#include "cluster/centre_search_cuda.hpp"

#include "cluster/row_lists_cuda.hpp"
#include "cuda/error.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"
#include "rows/finite_check.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace kith {
namespace {

void copy(void* to, const void* from, int64_t bytes, cudaStream_t stream) {
  KITH_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream));
}

}  // namespace

CentreSearchCuda::CentreSearchCuda(const KMeansProblem& problem, const KMeansPlan& plan, const KMeansWorkspace& layout,
                                   std::byte* workspace, std::shared_ptr<const DeviceContext> context,
                                   DataSample sample, const Resources& resources)
    : problem_(problem),
      plan_(plan),
      layout_(layout),
      workspace_(workspace),
      context_(std::move(context)),
      resources_(resources),
      quiet_(resources.with_progress({})),
      kind_(problem.spherical ? KeyKind::inner_product : KeyKind::squared_l2),
      chunks_(operand_chunks(problem.cols, 2)),
      largest_(sample.largest),
      rest_problem_(rest_problem(problem, plan.device, plan.cuda.rest_rows)) {
  if (problem.spherical) {  // centres have length 1, rows scales of their own
    std::fill(sample.origin.begin(), sample.origin.end(), 0.0f);
    largest_ = 1;
  } else if (problem.dtype == DType::u8 || problem.dtype == DType::i8) {
    for (float& value : sample.origin) value = std::round(value);  // so that differences are exact
  }
  copy(at<float>(layout_.origin), sample.origin.data(), problem.cols * 4, stream());
  context_->synchronize();
}

OperandTask CentreSearchCuda::operand_task(const DeviceRowsView& rows, std::byte* operands) const {
  return {
      rows,    problem_.cols, kind_, OperandType::half, at<float>(layout_.origin), at<BaseFacts>(layout_.centre_facts),
      operands};
}

void CentreSearchCuda::take_centres() const {
  if (!plan_.cuda.products) return;
  const BaseFacts facts{largest_, {0, 0}, 0};
  copy(at<BaseFacts>(layout_.centre_facts), &facts, sizeof facts, stream());
  const DeviceRowsView centres{at<float>(layout_.centres), DType::f32, problem_.cols, problem_.clusters, nullptr};
  launch_base_operands(operand_task(centres, at<std::byte>(layout_.centre_operands)),
                       {at<float>(layout_.centre_terms), nullptr}, stream());
}

// Leaves each row's candidates in the workspace. Returns in how many parts.
int CentreSearchCuda::multiply(const DeviceRowsView& rows, int64_t first, bool guesses, const std::byte* operands,
                               const QueryFacts* facts) const {
  SlacksTask slacks;
  slacks.kind = kind_;
  slacks.cols = problem_.cols;
  slacks.rows = rows.count;
  slacks.facts = facts;
  slacks.centre_facts = at<BaseFacts>(layout_.centre_facts);
  if (guesses) {
    slacks.labels = at<int32_t>(layout_.labels) + first;
    slacks.keys = at<float>(layout_.keys) + first;
    slacks.squared_moves = at<double>(layout_.moves);
  }
  slacks.slacks = at<float>(layout_.slacks);
  slacks.limits = at<float>(layout_.limits);
  launch_row_slacks(slacks, stream());

  const int64_t padded = operand_tiles(rows.count) * kOperandTile;
  const ProductSchedule schedule = schedule_nearest(rows.count, problem_.clusters, plan_.cuda.multiprocessors);
  const ProductOperands product{
      OperandType::half, operands, at<std::byte>(layout_.centre_operands), at<float>(layout_.centre_terms), padded,
      problem_.clusters, chunks_};
  launch_product_nearest(plan_.cuda.engine, product, schedule,
                         {slacks.slacks, slacks.limits, at<NearestRows>(layout_.candidates), padded,
                          int64_t{schedule.tiles_per_item} * kOperandTile, rows.count},
                         stream());
  return schedule.items / schedule.query_tiles;
}

void CentreSearchCuda::assign(const DeviceRowsView& rows, int64_t first, const Wanted& wanted, ProgressMeter& meter) {
  if (!plan_.cuda.products) return search_rest(rows, first, rows.count, nullptr, meter);
  const int64_t kept = plan_.cuda.operands_stay ? first : 0;
  std::byte* const operands = at<std::byte>(layout_.operands) + kept / kOperandTile * chunks_ * kTileChunkBytes;
  auto* const facts = at<QueryFacts>(layout_.facts) + kept;
  auto* const counts = at<SearchCounts>(layout_.status);
  // Not by a copy, which would wait for rows on their way to the device.
  KITH_CUDA_CHECK(cudaMemsetAsync(counts, 0, sizeof *counts, stream()));
  KITH_CUDA_CHECK(cudaMemsetAsync(&counts->first_bad, 0xFF, sizeof counts->first_bad, stream()));  // kNoBadRow
  if (!operands_kept_) {
    uint32_t* const first_bad = problem_.check_finite ? &counts->first_bad : nullptr;
    launch_query_operands(operand_task(rows, operands), {facts, first_bad, 0}, stream());
  }

  SettleTask settle;
  settle.parts = multiply(rows, first, wanted.guesses, operands, facts);
  settle.kind = kind_;
  settle.rows = rows;
  settle.centres = at<float>(layout_.centres);
  settle.cols = problem_.cols;
  settle.facts = facts;
  settle.centre_facts = at<BaseFacts>(layout_.centre_facts);
  settle.found = at<NearestRows>(layout_.candidates);
  settle.stride = operand_tiles(rows.count) * kOperandTile;
  settle.labels = at<int32_t>(layout_.labels) + first;
  settle.keys = at<float>(layout_.keys) + first;
  settle.failed = at<uint32_t>(layout_.failed);
  settle.failed_count = &counts->failed;
  settle.unsettled = at<uint32_t>(layout_.unsettled);
  settle.unsettled_count = &counts->unsettled;
  launch_settle(settle, stream());
  SearchCounts found{};
  copy(&found, counts, sizeof found, stream());
  context_->synchronize();
  if (found.first_bad != kNoBadRow) throw_not_finite("data", first + found.first_bad);
  const uint32_t count = found.failed;
  constexpr double kFewSteps = 4e9;  // a fraction of a millisecond
  if (static_cast<double>(count) * static_cast<double>(problem_.clusters * problem_.cols) <= kFewSteps) {
    launch_search_few(settle, problem_.clusters, count, stream());
  } else {
    search_rest(rows, first, count, settle.failed, meter);
  }
  if (wanted.keys) launch_row_keys(settle, stream());
}

// The nearest centres of `count` rows, those listed or all, by exact search.
void CentreSearchCuda::search_rest(const DeviceRowsView& rows, int64_t first, int64_t count, const uint32_t* listed,
                                   ProgressMeter& meter) {
  if (count == 0) return;
  if (rest_ == nullptr) {
    rest_ = make_knn_cuda(rest_problem_, plan_.cuda.rest, resources_);
    found_.resize(static_cast<size_t>(plan_.cuda.rest_rows));
  }
  const MemorySpace space = MemorySpace::cuda(context_->device());
  const MatrixView centres(at<float>(layout_.centres), DType::f32, {problem_.clusters, problem_.cols, problem_.cols},
                           space);
  auto* const found = at<uint64_t>(layout_.failed_found);
  for (int64_t done = 0; done < count; done += plan_.cuda.rest_rows) {
    const int64_t part = std::min(plan_.cuda.rest_rows, count - done);
    MatrixView some;
    if (listed == nullptr) {
      const DeviceRowsView slice = slice_rows(rows, done, part);
      some = MatrixView(slice.data, problem_.dtype, {part, problem_.cols, slice.stride}, space);
    } else {
      launch_gather_rows(rows, problem_.cols, listed + done, part, at<std::byte>(layout_.failed_rows), stream());
      some =
          MatrixView(at<std::byte>(layout_.failed_rows), problem_.dtype, {part, problem_.cols, problem_.cols}, space);
    }
    context_->synchronize();  // exact search has a stream of its own, unless it is the caller's
    const int64_t batch = plan_.cuda.rest.query_batch;
    for (int64_t at_row = 0; at_row < part; at_row += batch) {
      ProgressMeter quiet("assign", part, quiet_);
      rest_->begin(some.slice(at_row, std::min(batch, part - at_row)), 0);
      rest_->scan(centres, 0, nullptr, quiet);
      rest_->finish(found_.data() + at_row);
      meter.poll();
    }
    copy(found, found_.data(), part * 8, stream());
    const int64_t offset = first + (listed == nullptr ? done : 0);
    launch_take_found(found, part, listed == nullptr ? nullptr : listed + done, at<int32_t>(layout_.labels) + offset,
                      at<float>(layout_.keys) + offset, stream());
    context_->synchronize();
  }
  if (listed != nullptr && count > rows.count / 8) {
    resources_.log(LogLevel::info, std::to_string(count) + " of " + std::to_string(rows.count) +
                                       " rows have many centres that are about as near and were searched for exactly");
  }
}

}  // namespace kith
