// All values of some packed queries and all rows of a packed base, where none is ruled out (panel_product.hpp rules most out).
#pragma once

#include "kernels/panels/panel_product.hpp"

#include <cstdint>

namespace kith {

// That of query q and row r goes to values[q * stride + r], for whole panels of queries and of rows, whose pads are written
// to as well. The queries' limits are infinite.
void all_values(const PanelQueries& queries, const PanelBase& base, int64_t panels, float* values, int64_t stride);

// The same for bf16 of few enough columns to be added up at once (has_segments), by AMX's tiles.
void all_values_amx(const PanelQueries& queries, const PanelBase& base, int64_t panels, float* values, int64_t stride);

}  // namespace kith
