// From products to labels on the GPU: which centres a product cannot rule out, and the canonical keys of these. A row's
// label is the first of all centres by (canonical key, centre), as on the CPU (assign_cpu.hpp).
//
// nearest_centre_cuda.cu compares by windows, unsettled_rows_cuda.cu pair by pair.
//
// Cost: some 80 bytes a row, and one read of those rows, few, that have more than one candidate; for keys, of all.
#pragma once

#include "kernels/assign/few_centre_screen.hpp"
#include "kernels/assign/settle_task_cuda.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/operand_bounds.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// The centres' terms as products compare them (centre_window.hpp), for rows whose operands have been measured.
struct LowerTermsTask {
  int64_t cols = 0;
  int64_t rows = 0;
  const QueryOperand* bounds = nullptr;      // of the rows
  const OperandBounds* centres = nullptr;  // of each place of the centres' tiles, as the terms
  const float* terms = nullptr;
  int64_t places = 0;
  float* lowered = nullptr;         // terms
  float* widths = nullptr;          // likewise
  float* part_widths = nullptr;     // as ProductNearest has them
  OperandBounds* typical = nullptr;  // longer than most rows, rounded by more; null: terms stay, and widths are 0
};
void launch_lower_terms(const LowerTermsTask& task, cudaStream_t stream);

// How far above the least value of a row's products the nearest centre's can be, whatever the least one is; where a
// typical row is given, beside the width of the centre that has it. Where there are guesses, the least value is no more
// than that centre's, and there is a limit from the start.
void launch_row_slacks(const SettleTask& task, cudaStream_t stream);

// Labels, but of the unsettled rows, and the keys of those with several candidates. Both counts are zeroed before.
void launch_settle(const SettleTask& task, cudaStream_t stream);
// The keys of the rows that have one candidate: the others got theirs when it was chosen.
void launch_row_keys(const SettleTask& task, cudaStream_t stream);

// The labels of the unsettled rows, by the canonical keys of all centres: for few rows.
void launch_search_few(const SettleTask& task, int64_t clusters, int64_t count, cudaStream_t stream);

// The labels and keys of all rows, by the canonical keys of all centres: for little work. Of the task rows, centres,
// labels and keys. The first row that is not finite goes to `first_bad`, if not null, which holds kNoBadRow.
void launch_search_all(const SettleTask& task, int64_t clusters, uint32_t* first_bad, cudaStream_t stream);

// The same as of few rows where only the device knows how many rows are unsettled: where they are no more than
// `most_few`, by all centres; else by those that products at or below the thresholds mark (ProductMarks), up to
// kMostMarkedCentres.
struct UnsettledTask {
  int64_t clusters = 0;
  uint32_t most_few = 0;
  int32_t items = 0;                // of the marking product
  int32_t* marked_items = nullptr;  // what of them is to be done: all or none
  const uint32_t* marks = nullptr;
};
void launch_choose_marking(const SettleTask& task, const UnsettledTask& unsettled, cudaStream_t stream);
// After that product.
void launch_settle_unsettled(const SettleTask& task, const UnsettledTask& unsettled, cudaStream_t stream);

// Labels and keys of rows that were searched for by themselves: of rows[i], or of row i where `rows` is null.
void launch_take_found(const uint64_t* found, int64_t count, const uint32_t* rows, int32_t* labels, float* keys,
                       cudaStream_t stream);

// Keys of rows and centres times 2^exponent become, in place, the distances of those as they are, or inner products.
void launch_distances_of_keys(float* keys, int64_t count, bool spherical, int exponent, cudaStream_t stream);

}  // namespace kith
