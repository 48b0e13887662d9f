#include "cluster/search/centre_search_cuda.hpp"

#include "cuda/vector_access.hpp"
#include "kernels/assign/few_centres_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"
#include "rows/finite_check.hpp"
#include "rows/gather_rows_cuda.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace kith {

CentreSearchCuda::CentreSearchCuda(const CentreSearchShape& shape, const CentreSearchPlan& plan, DataSample sample,
                                   std::byte* memory, std::shared_ptr<const DeviceContext> context,
                                   const Resources& resources)
    : shape_(shape),
      plan_(plan),
      layout_(shape, plan),
      memory_(memory),
      context_(std::move(context)),
      resources_(resources),
      quiet_(resources.with_progress({})),
      chunks_(operand_chunks(shape.cols, 2)),
      largest_(sample.largest),
      search_(unsettled_search(shape, Device::cuda(context_->device()), plan.unsettled_rows)) {
  if (!plan.has_products()) return;
  if (shape.kind == KeyKind::inner_product) {  // centres have length 1, rows scales of their own
    std::fill(sample.origin.begin(), sample.origin.end(), 0.0f);
    largest_ = 1;
  } else if (shape.dtype == DType::u8 || shape.dtype == DType::i8) {
    for (float& value : sample.origin) value = std::round(value);  // so that differences are exact
  }
  context_->copy_values(at(layout_.origin), sample.origin.data(), shape.cols);
}

OperandTask CentreSearchCuda::operand_task(const DeviceRowsView& rows, std::byte* operands) const {
  return {rows, shape_.cols, shape_.kind, OperandType::half, at(layout_.origin), at(layout_.centre_bounds), operands};
}

void CentreSearchCuda::set_centres(const float* centres, int64_t count) {
  centres_ = centres;
  centre_count_ = count;
  if (!plan_.has_products()) return;
  const BaseBounds bounds{largest_, {0, 0}, 0};
  context_->copy_values(at(layout_.centre_bounds), &bounds, 1);
  const DeviceRowsView rows{centres, DType::f32, shape_.cols, count, nullptr};
  launch_base_operands(operand_task(rows, at(layout_.centre_operands)),
                       {at(layout_.centre_terms), nullptr, at(layout_.centre_rows)}, stream());
}

// Computes the terms by which rows compare centres, after the operands were made.
void CentreSearchCuda::lower_terms(const QueryOperand* bounds, int64_t rows) const {
  LowerTermsTask task;
  task.cols = shape_.cols;
  task.rows = rows;
  task.bounds = bounds;
  task.centres = at(layout_.centre_rows);
  task.terms = at(layout_.centre_terms);
  task.places = operand_tiles(centre_count_) * kOperandTile;
  task.lowered = at(layout_.lowered_terms);
  task.widths = at(layout_.widths);
  task.part_widths = at(layout_.part_widths);
  task.typical = typical();
  launch_lower_terms(task, stream());
}

// Multiplies; writes each row's candidates, in as many parts as it returns.
int CentreSearchCuda::multiply(const SettleTask& task, const std::byte* operands) const {
  lower_terms(task.bounds, task.rows.count);
  launch_row_slacks(task, stream());
  const int64_t padded = operand_tiles(task.rows.count) * kOperandTile;
  const ProductSchedule schedule = schedule_nearest(task.rows.count, centre_count_, shape_.cols, plan_.multiprocessors);
  const ProductOperands product{
      OperandType::half, operands, at(layout_.centre_operands),     at(layout_.lowered_terms), padded,
      centre_count_,     chunks_,  last_chunk_steps(shape_.cols, 2)};
  launch_product<ProductNearest>(
      plan_.engine, product, schedule,
      {task.slacks, task.limits, at(layout_.widths), at(layout_.part_widths), at(layout_.candidates), padded,
       int64_t{schedule.tiles_per_item} * kOperandTile, task.rows.count},
      stream());
  return schedule.items / schedule.query_tiles;
}

// Compares all pairs in one pass; the host reads only what was seen of the rows.
void CentreSearchCuda::compare_pairs(const CentreSearchTask& task) {
  const bool looks = task.check_finite || task.probe >= 0;
  RowsSeen* const seen = looks ? &at(layout_.counts)->seen : nullptr;
  if (looks) context_->fill(seen, 0xFF, 1);
  FewCentresTask pairs{shape_.kind, task.rows, centres_, centre_count_, shape_.cols, task.labels};
  pairs.keys = task.wants_keys || plan_.form == AssignForm::pairs ? task.keys : nullptr;
  pairs.seen = seen;
  pairs.probe = task.probe;
  pairs.check_finite = task.check_finite;
  launch_compare_pairs(plan_.form, pairs, plan_.multiprocessors, stream());
  if (!looks) return;
  RowsSeen found{};
  context_->copy_values(&found, seen, 1);
  context_->synchronize();
  if (task.check_finite && found.first_bad != kNoBadRow) throw_not_finite("data", task.number + found.first_bad);
  plain_ = found.no_extreme != 0 && found.probe_near == 0;
}

void CentreSearchCuda::run(const CentreSearchTask& task, ProgressMeter& meter) {
  if (plan_.compares_pairs()) return compare_pairs(task);
  if (!plan_.has_products()) return search_exactly(task, task.rows.count, nullptr, meter);
  const int64_t kept = shape_.kept_rows > 0 ? task.first : 0;
  std::byte* const operands = at(layout_.operands) + kept / kOperandTile * chunks_ * kTileChunkBytes;
  auto* const bounds = at(layout_.row_bounds) + kept;
  auto* const counts = at(layout_.counts);
  // Not by a copy, which would wait for rows on their way to the device.
  context_->fill(counts, 0, 1);
  context_->fill(&counts->seen.first_bad, 0xFF, 1);  // kNoBadRow
  if (!task.operands_kept) {
    uint32_t* const first_bad = task.check_finite ? &counts->seen.first_bad : nullptr;
    launch_query_operands(operand_task(task.rows, operands), {bounds, first_bad, 0}, stream());
  }

  SettleTask settle;
  settle.kind = shape_.kind;
  settle.rows = task.rows;
  settle.centres = centres_;
  settle.cols = shape_.cols;
  settle.bounds = bounds;
  settle.centre_bounds = at(layout_.centre_bounds);
  settle.typical = typical();
  settle.widths = at(layout_.widths);
  settle.found = at(layout_.candidates);
  settle.stride = operand_tiles(task.rows.count) * kOperandTile;
  settle.labels = task.labels;
  settle.keys = task.keys;
  settle.unsettled = at(layout_.unsettled);
  settle.unsettled_count = &counts->unsettled;
  settle.several = at(layout_.several);
  settle.several_count = &counts->several;
  settle.squared_moves = task.squared_moves;
  if (task.squared_moves == nullptr) settle.known = task.known;
  settle.slacks = at(layout_.slacks);
  settle.limits = at(layout_.limits);
  settle.thresholds = settle.slacks;  // whose work is done by then
  settle.parts = multiply(settle, operands);
  launch_settle(settle, stream());
  CentreSearchCounts found{};
  if (task.check_finite || !marks()) {
    context_->copy_values(&found, counts, 1);
    context_->synchronize();
    const uint32_t first_bad = found.seen.first_bad;
    if (task.check_finite && first_bad != kNoBadRow) throw_not_finite("data", task.number + first_bad);
  }
  const auto each = static_cast<double>(centre_count_ * shape_.cols);
  constexpr double kFewSteps = 4e9;  // a fraction of a millisecond
  if (marks()) {
    settle_by_marks(settle, operands);
  } else if (static_cast<double>(found.unsettled) * each <= kFewSteps) {
    launch_search_few(settle, centre_count_, found.unsettled, stream());
  } else {
    search_exactly(task, found.unsettled, settle.unsettled, meter);
  }
  if (task.wants_keys) launch_row_keys(settle, stream());
}

// If many rows are undecided, multiplies all rows again and marks every centre that may be nearest to such a row. The
// host does not wait to learn their number.
void CentreSearchCuda::settle_by_marks(const SettleTask& settle, const std::byte* operands) const {
  constexpr double kFewerSteps = 1e8;
  constexpr int64_t kProductIsFaster = 64;  // times as fast; but it is of all rows again
  ProductSchedule schedule = schedule_nearest(settle.rows.count, centre_count_, shape_.cols, plan_.multiprocessors);
  schedule.base_tiles = static_cast<int>(operand_tiles(centre_count_));  // marks are written for pairs
  schedule.list_count = &at(layout_.counts)->marked_items;
  const auto each = static_cast<double>(centre_count_ * shape_.cols);
  UnsettledTask unsettled;
  unsettled.clusters = centre_count_;
  unsettled.most_few =
      static_cast<uint32_t>(std::max(static_cast<int64_t>(kFewerSteps / each), settle.rows.count / kProductIsFaster));
  unsettled.items = schedule.items;
  unsettled.marked_items = &at(layout_.counts)->marked_items;
  static_assert(mark_words(kMostMarkedCentres) * sizeof(uint32_t) <= sizeof(NearestRows));
  auto* const marks = vectors<uint32_t>(at(layout_.candidates));  // which have been chosen among
  unsettled.marks = marks;
  if (settle.rows.count > unsettled.most_few) {
    launch_choose_marking(settle, unsettled, stream());
    const ProductOperands product{
        OperandType::half, operands, at(layout_.centre_operands), at(layout_.lowered_terms), settle.rows.count,
        centre_count_,     chunks_};
    launch_product<ProductMarks>(plan_.engine, product, schedule, {settle.thresholds, marks}, stream());
  }
  launch_settle_unsettled(settle, unsettled, stream());
}

// The nearest centres of `count` rows, those listed or all, by exact search.
void CentreSearchCuda::search_exactly(const CentreSearchTask& task, int64_t count, const uint32_t* listed,
                                      ProgressMeter& meter) {
  if (count == 0) return;
  if (exact_ == nullptr) {
    exact_ = make_knn_cuda(search_, plan_.exact, resources_);
    found_.resize(static_cast<size_t>(plan_.unsettled_rows));
  }
  const MemorySpace space = MemorySpace::cuda(context_->device());
  const MatrixView centres(centres_, DType::f32, {centre_count_, shape_.cols, shape_.cols}, space);
  auto* const found = at(layout_.gathered_found);
  for (int64_t done = 0; done < count; done += plan_.unsettled_rows) {
    const int64_t part = std::min(plan_.unsettled_rows, count - done);
    DeviceRowsView some{at(layout_.gathered), shape_.dtype, shape_.cols, part, nullptr};
    if (listed == nullptr) {
      some = slice_rows(task.rows, done, part);
    } else {
      launch_gather_rows(task.rows, shape_.cols, listed + done, part, at(layout_.gathered), stream());
    }
    const MatrixView rows(some.data, shape_.dtype, {part, shape_.cols, some.stride}, space);
    context_->synchronize();  // exact search has a stream of its own, unless it is the caller's
    const int64_t batch = plan_.exact.query_batch;
    for (int64_t at_row = 0; at_row < part; at_row += batch) {
      ProgressMeter quiet("assign", part, quiet_);
      exact_->begin(rows.slice(at_row, std::min(batch, part - at_row)), 0);
      exact_->scan(centres, 0, nullptr, quiet);
      exact_->finish(found_.data() + at_row);
      meter.poll();
    }
    context_->copy_values(found, found_.data(), part);
    const int64_t offset = listed == nullptr ? done : 0;
    launch_take_found(found, part, listed == nullptr ? nullptr : listed + done, task.labels + offset,
                      task.keys + offset, stream());
    context_->synchronize();
  }
  if (listed != nullptr && count > task.rows.count / 8) {
    resources_.log(LogLevel::info, std::to_string(count) + " of " + std::to_string(task.rows.count) +
                                       " rows have many centres that are about as near and were searched for exactly");
  }
}

}  // namespace kith
