// One pass over vectors on the GPU that finds the first with a NaN or an infinity and the inverse norms.
#pragma once

#include "kernels/distance/distance_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr uint32_t kNoBadRow = 0xFFFFFFFFu;

// Lowers *first_bad, which holds kNoBadRow or an earlier finding, to the smallest row that is not finite, and fills
// inverse_norms; either may be null. Enqueues and returns. `rows` has fewer than 2^32 - 1 rows.
void launch_inspect_rows(const DeviceRowsView& rows, int64_t cols, double* inverse_norms, uint32_t* first_bad,
                         cudaStream_t stream);

}  // namespace kith
