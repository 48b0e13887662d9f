#include "exact/block_scan.hpp"
#include "kernels/panels/byte_product.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace kith {
namespace {

class ByteBlockScan final : public BytePanelHits, private BlockScan<int32_t> {
 public:
  ByteBlockScan(CpuScanner& scanner, const PackedRows& packed, int64_t first_row, int64_t task, int slot)
      : BlockScan(scanner, packed, first_row, task, slot, kSmallestLimit), panels_(packed.byte_panels()) {
    for (int64_t q = 0; q < query_count_; ++q) set_limit(q);
    queries_ = scanner.packed().byte_panels(first_query_, query_count_, limits_.data());
  }

  void run() {
    for_panels(panels_.cols,
               [&](int64_t first, int64_t count) { scan_byte_panels(queries_, panels_, first, count, *this); });
  }

  void on_hit(int64_t query, int64_t panel, uint64_t passed, const int32_t* values) override {
    const int32_t offset = scanner_.packed().byte_offset(first_query_ + query);
    CandidateList& candidates = list(query);
    if (const int64_t count = rows_in(panel); count < 64) passed &= (uint64_t{1} << count) - 1;
    for (; passed != 0; passed &= passed - 1) {
      const int i = std::countr_zero(passed);
      const uint32_t row = first_row_of(panel) + static_cast<uint32_t>(i);
      if (scanner_.keeps_row(row)) candidates.push_exact(key_of_sum(scanner_.kind(), values[i] + offset), row);
    }
    if (candidates.has_room()) return;
    make_room(query);
    set_limit(query);
  }

 private:
  void set_limit(int64_t query) {
    const int64_t limit = int64_t{largest_sum(scanner_.kind(), largest_key(query))} -
                          scanner_.packed().byte_offset(first_query_ + query);
    limits_[static_cast<size_t>(query)] =
        static_cast<int32_t>(std::clamp<int64_t>(limit, kSmallestLimit, kLargestLimit));
  }

  const BytePanelBase panels_;
  BytePanelQueries queries_;
};

}  // namespace

void scan_byte_block(CpuScanner& scanner, const PackedRows& packed, int64_t first_row, int64_t task, int slot) {
  ByteBlockScan(scanner, packed, first_row, task, slot).run();
}

}  // namespace kith
