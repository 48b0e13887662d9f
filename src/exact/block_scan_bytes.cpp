#include "exact/block_scan.hpp"

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

class ByteBlockScan final : public BytePanelHits {
 public:
  ByteBlockScan(const ScanContext& context, const PackedBase& packed, const ScanBlock& block)
      : context_(context), packed_(packed), block_(block), panels_(packed.byte_panels()) {
    const int64_t width = context.queries.panel_width();
    limits_.assign(static_cast<size_t>((block.query_count + width - 1) / width * width), kSmallestLimit);
    for (int64_t q = 0; q < block.query_count; ++q) set_limit(q);
    queries_ = context.queries.byte_panels(block.first_query, block.query_count, limits_.data());
  }

  void run() {
    const int64_t step = panels_between_checkpoints(panels_.cols);
    for (int64_t panel = block_.first_panel; panel < block_.end_panel; panel += step) {
      const int64_t count = std::min(step, block_.end_panel - panel);
      scan_byte_panels(queries_, panels_, panel, count, *this);
      context_.meter.add(block_.query_count * count * packed_.rows_per_panel());
      context_.meter.checkpoint();
    }
  }

  void on_hit(int64_t query, int64_t panel, uint64_t passed, const int32_t* values) override {
    const int32_t offset = context_.queries.byte_offset(block_.first_query + query);
    CandidateList& list = context_.list(block_.first_query + query, block_.split);
    const int64_t width = packed_.rows_per_panel();
    const int64_t count = std::min(width, packed_.rows() - panel * width);
    const auto first_row = static_cast<uint32_t>(block_.first_row + panel * width);
    if (count < 64) passed &= (uint64_t{1} << count) - 1;
    for (; passed != 0; passed &= passed - 1) {
      const int i = std::countr_zero(passed);
      const uint32_t row = first_row + static_cast<uint32_t>(i);
      if (context_.keeps_row(row)) list.push_exact(key_of_sum(context_.kind, values[i] + offset), row);
    }
    if (list.has_room()) return;
    context_.make_room(block_.first_query + query, block_.split, block_.slot);
    set_limit(query);
  }

 private:
  void set_limit(int64_t query) {
    CandidateList& list = context_.list(block_.first_query + query, block_.split);
    context_.exchange_threshold(block_.first_query + query, &list);
    const int64_t limit =
        int64_t{largest_sum(context_.kind, list.limit())} - context_.queries.byte_offset(block_.first_query + query);
    limits_[static_cast<size_t>(query)] =
        static_cast<int32_t>(std::clamp<int64_t>(limit, kSmallestLimit, kLargestLimit));
  }

  const ScanContext& context_;
  const PackedBase& packed_;
  const ScanBlock& block_;
  const BytePanelBase panels_;
  std::vector<int32_t> limits_;
  BytePanelQueries queries_;
};

}  // namespace

void scan_byte_block(const ScanContext& context, const PackedBase& packed, const ScanBlock& block) {
  ByteBlockScan(context, packed, block).run();
}

}  // namespace kith
