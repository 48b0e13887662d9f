#include "cluster/search/centre_search_plan.hpp"

#include "core/divide.hpp"
#include "kernels/distance/distance_task.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/operand_layout.hpp"

#include <algorithm>
#include <optional>

namespace kith {
namespace {

// The centres are cut into so many parts at most, where there are no more query tiles than this.
constexpr int64_t kMostNearestParts = 8;
constexpr int64_t kFewQueryTiles = 256;
// Steps of canonical sums: an H200 does as many in 25 microseconds.
constexpr int64_t kDirectSteps = int64_t{1} << 24;

// The form that compares all pairs in one kernel, if one suits, on a device of this compute capability.
std::optional<AssignForm> pair_form(const CentreSearchShape& shape, int compute_capability) {
  const bool squared = shape.kind == KeyKind::squared_l2;
  if (squared && suits_wide_few_centres(shape.centres, shape.cols)) return AssignForm::two_rows;
  if (shape.kind != KeyKind::l2 && suits_few_centres(shape.centres, shape.cols)) return AssignForm::registers;
  if (!shape.once) return {};
  const bool tiles = compute_capability >= 80;  // 92 KiB of shared memory
  if (tiles && squared && suits_tiled_centres(shape.rows, shape.centres, shape.cols)) return AssignForm::tiles;
  const int64_t steps = saturating_multiply(saturating_multiply(shape.rows, shape.centres), shape.cols);
  if (steps <= kDirectSteps && has_fast_doubles(compute_capability)) return AssignForm::pairs;
  return {};
}

int64_t most_parts(int64_t centres) {
  return std::min(kMostNearestParts, divide_up(divide_up(centres, kOperandTile), 2));
}

// The number of parts of the centres such that rows multiplied at a time stay in the L2 cache; 1 for narrow rows.
int64_t wide_parts(int64_t centres, int64_t cols, int multiprocessors) {
  const int64_t panel = std::max<int64_t>(panel_of(multiprocessors, operand_chunks(cols, 2)), 1);
  return std::clamp<int64_t>(divide_up(multiprocessors, panel), 1, std::max<int64_t>(most_parts(centres), 1));
}

}  // namespace

SearchTask unsettled_search(const CentreSearchShape& shape, Device device, int64_t rows) {
  SearchShape search;
  search.queries = rows;
  search.rows = shape.centres;
  search.cols = shape.cols;
  search.query_dtype = shape.dtype;
  search.metric = shape.kind == KeyKind::inner_product ? Metric::inner_product
                  : shape.kind == KeyKind::l2          ? Metric::l2
                                                       : Metric::sqeuclidean;
  search.query_space = search.base_space = MemorySpace::cuda(device.index);
  return search_of(search, {.k = 1, .check_finite = false});
}

bool compares_pairs(const CentreSearchShape& shape) {
  constexpr int kCapableOfAll = 90;
  return pair_form(shape, kCapableOfAll).has_value();
}

CentreSearchPlan plan_centre_search(const CentreSearchShape& shape, const DeviceInfo& device, const PlanBudget& budget,
                                    int64_t unsettled_rows, ProductEngine asked) {
  CentreSearchPlan plan;
  plan.multiprocessors = device.multiprocessors;
  const std::optional<AssignForm> pairs = pair_form(shape, device.compute_capability);
  if (pairs && asked == ProductEngine::automatic) {
    plan.form = *pairs;
    return plan;
  }
  if (device.compute_capability < 80 || shape.cols > kWindowMostCols) plan.form = AssignForm::exact;
  if (plan.has_products()) plan.engine = product_engine(device.compute_capability, asked);
  if (plan.has_products() && shape.centres <= kMostMarkedCentres) return plan;
  plan.unsettled_rows = std::min(shape.rows, unsettled_rows);
  const SearchTask search = unsettled_search(shape, device.device, plan.unsettled_rows);
  // Undecided rows have many near centres: more candidates than the coarse path has room for.
  plan.exact = plan_knn_cuda(search, device, budget, {.coarse = CoarsePath::never});
  return plan;
}

ProductSchedule schedule_nearest(int64_t rows, int64_t centres, int64_t cols, int multiprocessors) {
  ProductSchedule schedule;
  schedule.query_tiles = static_cast<int>(operand_tiles(rows) / 2);
  schedule.base_tiles = static_cast<int>(divide_up(centres, kOperandTile));
  const int64_t pairs = divide_up(schedule.base_tiles, 2);
  const int64_t wide = wide_parts(centres, cols, multiprocessors);
  const int64_t few = schedule.query_tiles > kFewQueryTiles ? 1 : divide_up(2 * multiprocessors, schedule.query_tiles);
  const int64_t parts = std::clamp<int64_t>(few, wide, most_parts(centres));
  schedule.tiles_per_item = static_cast<int>(divide_up(pairs, parts) * 2);
  const auto cut = static_cast<int>(divide_up(schedule.base_tiles, schedule.tiles_per_item));
  schedule.items = schedule.query_tiles * cut;
  // A panel has as many rows as the concurrently running blocks cover in all parts.
  if (wide > 1) schedule.panel_tiles = static_cast<int>(divide_up(multiprocessors, cut));
  return schedule;
}

CentreSearchLayout::CentreSearchLayout(const CentreSearchShape& shape, const CentreSearchPlan& plan) {
  const int64_t rows = plan.has_products() ? shape.rows : 0;
  const int64_t with_operands = plan.has_products() ? std::max(shape.rows, shape.kept_rows) : 0;
  const int64_t tile_bytes = saturating_multiply(operand_chunks(shape.cols, 2), kTileChunkBytes);
  operands = take<std::byte>(operand_tiles(with_operands), tile_bytes);
  row_bounds = take<QueryOperand>(with_operands);

  const int64_t padded = operand_tiles(rows) * kOperandTile;
  // For few rows the centres are divided into parts, enough to fill the GPU twice.
  const int64_t few = (2 * int64_t{plan.multiprocessors} + kFewQueryTiles) * kQueryTile;
  const int64_t wide = padded * wide_parts(shape.centres, shape.cols, plan.multiprocessors);
  slacks = take<float>(rows);
  limits = take<float>(rows);
  candidates = take<NearestRows>(std::max(wide, std::min(kMostNearestParts * padded, few)));
  unsettled = take<uint32_t>(rows);
  several = take<uint32_t>(rows);
  gathered = take_rows(plan.has_products() ? plan.unsettled_rows : 0, shape.cols, shape.dtype);
  gathered_found = take<uint64_t>(plan.unsettled_rows);

  centre_operands = take<std::byte>(plan.has_products() ? operand_tiles(shape.centres) : 0, tile_bytes);
  const int64_t places = operand_tiles(shape.centres) * kOperandTile;
  centre_terms = take<float>(places);
  lowered_terms = take<float>(plan.has_products() ? places : 0);
  widths = take<float>(plan.has_products() ? places : 0);
  part_widths = take<float>(plan.has_products() ? places / kGroupRowsPerTile : 0);
  centre_rows = take<OperandBounds>(plan.has_products() ? places : 0);
  typical = take<OperandBounds>(1);
  centre_bounds = take<BaseBounds>(1);
  origin = take<float>(shape.cols);
  counts = take<CentreSearchCounts>(1);
}

}  // namespace kith
