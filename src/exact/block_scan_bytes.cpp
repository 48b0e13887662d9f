#include "exact/block_scan.hpp"
#include "kernels/panels/byte_key.hpp"
#include "kernels/panels/byte_product.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace kith {
namespace {

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
