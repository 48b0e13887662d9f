// Chi-square distances in f32 from one row to others that lie anywhere, on the CPU: for ruling pairs out.
#pragma once

#include <cstdint>

namespace kith {

// values[i] = sum (query - x)^2 / (query + x), x the row at rows[i]: within relative_error(KeyKind::chi_square) of it and
// underflow_error(), as PanelStep::chi_square is (panel_product.hpp).
void chi_square_values_cpu(const float* query, const float* const* rows, int64_t count, int64_t cols, float* values);

}  // namespace kith
