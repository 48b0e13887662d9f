#include "exact/block_scan.hpp"
#include "kernels/panels/byte_product.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace kith {
namespace {

// The canonical key of an exact sum: the lanes of a canonical sum of bytes hold the same integers, exactly.
float key_of_sum(KeyKind kind, int32_t sum) {
  return kind == KeyKind::l2 ? static_cast<float>(std::sqrt(static_cast<double>(sum))) : static_cast<float>(sum);
}

// The largest sum whose key is not above the limit, or one that no pair has.
int32_t largest_sum(KeyKind kind, float limit) {
  int64_t low = kind == KeyKind::inner_product ? kSmallestLimit : -1;  // not above, or below every sum
  int64_t high = int64_t{kLargestLimit} + 1;                           // above
  if (!(limit < static_cast<float>(kLargestLimit))) return kLargestLimit;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (key_of_sum(kind, static_cast<int32_t>(middle)) <= limit) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return static_cast<int32_t>(low);
}

class ByteBlockScan final : public BytePanelHits, private BlockScan<int32_t> {
 public:
  ByteBlockScan(const ScanContext& context, const PackedRows& packed, const ScanBlock& block)
      : BlockScan(context, packed, block, kSmallestLimit), panels_(packed.byte_panels()) {
    for (int64_t q = 0; q < block.query_count; ++q) set_limit(q);
    queries_ = context.queries.packed().byte_panels(block.first_query, block.query_count, limits_.data());
  }

  void run() {
    for_panels(panels_.cols,
               [&](int64_t first, int64_t count) { scan_byte_panels(queries_, panels_, first, count, *this); });
  }

  void on_hit(int64_t query, int64_t panel, uint64_t passed, const int32_t* values) override {
    const int32_t offset = context_.queries.packed().byte_offset(block_.first_query + query);
    CandidateList& candidates = list(query);
    if (const int64_t count = rows_in(panel); count < 64) passed &= (uint64_t{1} << count) - 1;
    for (; passed != 0; passed &= passed - 1) {
      const int i = std::countr_zero(passed);
      const uint32_t row = first_row_of(panel) + static_cast<uint32_t>(i);
      if (context_.keeps_row(row)) candidates.push_exact(key_of_sum(context_.kind, values[i] + offset), row);
    }
    if (candidates.has_room()) return;
    make_room(query);
    set_limit(query);
  }

 private:
  void set_limit(int64_t query) {
    const int64_t limit = int64_t{largest_sum(context_.kind, largest_key(query))} -
                          context_.queries.packed().byte_offset(block_.first_query + query);
    limits_[static_cast<size_t>(query)] =
        static_cast<int32_t>(std::clamp<int64_t>(limit, kSmallestLimit, kLargestLimit));
  }

  const BytePanelBase panels_;
  BytePanelQueries queries_;
};

}  // namespace

void scan_byte_block(const ScanContext& context, const PackedRows& packed, const ScanBlock& block) {
  ByteBlockScan(context, packed, block).run();
}

}  // namespace kith
