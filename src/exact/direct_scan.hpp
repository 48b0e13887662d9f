// Candidates for few queries by one pass over the rows as they lie, or over those that the screen of `ready`, if it has
// one, does not rule out.
#pragma once

#include "exact/scan_context.hpp"
#include "kernels/panels/packed_rows.hpp"

namespace kith {

void direct_scan(const ScanContext& context, const PackedRows* ready, bool check_finite, int64_t first_row);

}  // namespace kith
