// Candidates for many queries by a matrix product over packed panels.
#pragma once

#include "exact/scan_context.hpp"
#include "kernels/panels/packed_rows.hpp"

namespace kith {

// Uses `ready` where it fits the instruction set in use; else packs plan.panel_rows rows at a time, checking them.
void product_scan(const ScanContext& context, const PackedRows* ready, bool check_finite, int64_t first_row);

}  // namespace kith
