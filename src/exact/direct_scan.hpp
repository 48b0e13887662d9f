// Candidates for few queries by one pass over the rows as they lie.
#pragma once

#include "exact/scan_context.hpp"

namespace kith {

void direct_scan(const ScanContext& context, bool check_finite, int64_t first_row);

}  // namespace kith
