// How a GPU finds the nearest centre of every row (centre_search_cuda.hpp): the shape of the search, its plan, and the
// layout of its single block of device memory. All of these can be made on any machine.
#pragma once

#include <kith/device.hpp>
#include <kith/dtype.hpp>

#include "core/plan_budget.hpp"
#include "cuda/workspace_layout.hpp"
#include "exact/knn_plan_cuda.hpp"
#include "kernels/assign/few_centre_screen.hpp"
#include "kernels/assign/rows_seen.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/nearest_rows.hpp"
#include "kernels/matrix/operand_bounds.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <cstdint>

namespace kith {

struct CentreSearchShape {
  int64_t rows = 0;       // in one call, at most
  int64_t kept_rows = 0;  // whose operands stay from call to call, so that rows which come again need not be read
  int64_t centres = 0;
  int64_t cols = 0;
  DType dtype = DType::f32;            // of the rows; centres are f32
  KeyKind kind = KeyKind::squared_l2;  // or l2, whose keys are equal more often, or inner_product
  bool once = false;                   // one call, for one assignment
};

struct CentreSearchPlan {
  AssignForm form = AssignForm::products;
  ProductEngine engine = ProductEngine::automatic;
  int multiprocessors = 0;
  int64_t unsettled_rows = 0;  // that go to exact search at a time: those with many centres about as near
  KnnCudaPlan exact;           // how; its bytes come on top of the layout's

  bool is_few() const { return form == AssignForm::registers || form == AssignForm::two_rows; }
  bool has_products() const { return form == AssignForm::products; }
  // With all centres, in one kernel: nothing is rounded.
  bool compares_pairs() const { return !has_products() && form != AssignForm::exact; }
};

// Whether a plan would do that on a device with fast doubles.
bool compares_pairs(const CentreSearchShape& shape);

// Takes `unsettled_rows` undecided rows at a time, within the budget's device memory, or the least that works. `asked`
// is for tests: the engine that the plan would otherwise choose itself.
CentreSearchPlan plan_centre_search(const CentreSearchShape& shape, const DeviceInfo& device, const PlanBudget& budget,
                                    int64_t unsettled_rows = 16384, ProductEngine asked = ProductEngine::automatic);

// The exact search of a plan's unsettled rows among the centres.
SearchTask unsettled_search(const CentreSearchShape& shape, Device device, int64_t rows);

// Multiplies each tile of rows with all centres. Centres are divided into parts if there are too few rows to fill the
// GPU, or if rows are so wide that those multiplied at a time would not stay in the L2 cache.
ProductSchedule schedule_nearest(int64_t rows, int64_t centres, int64_t cols, int multiprocessors);

// Counters of one call: undecided rows, rows with several candidates, the items of the product that marks
// candidates, and what was seen of the rows; where there are products that is the first that is not finite.
struct CentreSearchCounts {
  uint32_t unsettled;
  uint32_t several;
  int32_t marked_items;
  RowsSeen seen;
};

// A part that is not needed has no values. `bytes` is what the search needs, but for exact search.
struct CentreSearchLayout : WorkspaceLayout {
  Slot<std::byte> operands;    // of the kept rows, or of one call's
  Slot<QueryOperand> row_bounds;  // likewise
  Slot<float> slacks;
  Slot<float> limits;
  Slot<NearestRows> candidates;   // for each part
  Slot<uint32_t> unsettled;       // rows that products are not sure of
  Slot<uint32_t> several;         // rows with more than one candidate
  Slot<std::byte> gathered;       // unsettled_rows, as they came
  Slot<uint64_t> gathered_found;  // unsettled_rows packed neighbours
  Slot<std::byte> centre_operands;
  Slot<float> centre_terms;
  Slot<float> lowered_terms;       // centre_window.hpp's
  Slot<float> widths;              // likewise
  Slot<float> part_widths;         // kGroupsPerTile for each tile of centres
  Slot<OperandBounds> centre_rows;  // of each centre
  Slot<BaseBounds> centre_bounds;
  Slot<OperandBounds> typical;
  Slot<float> origin;
  Slot<CentreSearchCounts> counts;

  CentreSearchLayout(const CentreSearchShape& shape, const CentreSearchPlan& plan);
};

}  // namespace kith
