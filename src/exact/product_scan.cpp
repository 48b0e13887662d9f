#include "exact/product_scan.hpp"

#include "core/divide.hpp"
#include "exact/block_scan.hpp"

#include <algorithm>

namespace kith {
namespace {

void scan_packed(const ScanContext& context, const PackedRows& packed, int64_t first_row) {
  const int64_t block = context.plan.query_block;
  const int64_t splits = context.plan.row_splits;
  const int64_t blocks = divide_up(context.queries.size(), block);
  const auto scan_block = holds_bytes(packed.format()) ? scan_byte_block : scan_float_block;
  parallel_for(blocks * splits, context.meter, context.resources, [&](int64_t task, int slot) {
    // Rows first: when a query's later rows come, its earlier ones have lowered its threshold.
    const int64_t first_query = task % blocks * block;
    const int64_t split = task / blocks;
    const int64_t count = std::min(block, context.queries.size() - first_query);
    scan_block(context, packed,
               {first_query, count, packed.panel_count() * split / splits, packed.panel_count() * (split + 1) / splits,
                first_row, split, slot});
  });
}

}  // namespace

void product_scan(const ScanContext& context, const PackedRows* ready, bool check_finite, int64_t first_row) {
  const PanelFormat format = context.plan.format;
  if (ready != nullptr && ready->fits(format)) {
    context.queries.pack(ready->origin(), context.meter, context.resources);
    scan_packed(context, *ready, 0);
    return;
  }
  const MatrixView& base = context.base;
  const int64_t step = std::min(context.plan.panel_rows, base.rows());
  PackedRows packed(context.kind, format, choose_origin(context.kind, base), step, context.resources);
  context.queries.pack(packed.origin(), context.meter, context.resources);
  for (int64_t first = 0; first < base.rows(); first += step) {
    const MatrixView rows = base.slice(first, std::min(step, base.rows() - first));
    packed.pack(rows, {check_finite, first_row + first}, context.meter, context.resources);
    scan_packed(context, packed, first);
  }
}

}  // namespace kith
