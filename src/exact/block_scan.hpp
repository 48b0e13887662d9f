// One task of a product scan: a block of queries against a range of panels, with the queries' limits lowered as their
// candidate lists fill.
#pragma once

#include "exact/packed_base.hpp"
#include "exact/scan_context.hpp"

#include <cstdint>

namespace kith {

struct ScanBlock {
  int64_t first_query = 0;
  int64_t query_count = 0;
  int64_t first_panel = 0;
  int64_t end_panel = 0;
  int64_t first_row = 0;  // of the packed rows, in the scanned base
  int64_t split = 0;      // which list of each query
  int slot = 0;           // the thread's
};

// Floats: values within a bound become candidates.
void scan_float_block(const ScanContext& context, const PackedBase& packed, const ScanBlock& block);
// Bytes: values are exact, and so are the candidates' keys.
void scan_byte_block(const ScanContext& context, const PackedBase& packed, const ScanBlock& block);

// Panels that are scanned before the task looks up: tens of milliseconds of work.
inline int64_t panels_between_checkpoints(int64_t cols) { return std::max<int64_t>(1, (1 << 17) / cols); }

}  // namespace kith
