#include "core/infinity.hpp"
#include "exact/block_scan.hpp"
#include "exact/dense_scan.hpp"
#include "kernels/panels/screened_product.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace kith {
namespace {

// A panel's hits come to a candidate list together.
static_assert(kMostRowsPerPanel <= CandidateList::kLargestGroup);

class FloatBlockScan final : public PanelHits, private BlockScan<float> {
 public:
  FloatBlockScan(const ScanContext& context, const PackedRows& packed, const ScanBlock& block)
      : BlockScan(context, packed, block, -kInfinity),
        panels_(packed.panels()),
        dense_(context, block.first_query, block.query_count, block.split, block.slot),
        relative_(relative_error(context.kind, panels_.cols)) {
    for (int64_t q = 0; q < block.query_count; ++q) set_limit(q);
    queries_ = context.queries.packed().panels(block.first_query, block.query_count, limits_.data());
    if (packed.format() != PanelFormat::screened || context.plan.format != PanelFormat::screened) return;
    const RoundedQueries rounded =
        context.queries.packed().screen_panels(block.first_query, block.query_count, limits_.data());
    screened_.emplace(queries_, panels_, rounded, packed.screen_panels(), *this);
  }

  void run() {
    for_panels(panels_.cols, [&](int64_t first, int64_t count) {
      for (int64_t at = first; at < first + count;) {
        const int64_t panels = std::min(stretch_, first + count - at);
        scan(at, panels);
        at += panels;
      }
    });
  }

  void on_hit(int64_t query, int64_t panel, const float* values) override {
    if (dense_.takes(query, first_row_of(panel))) return;
    const float bound = queries_.bound(query).at(panels_.norms[panel]);
    const float offset = context_.queries.packed().offset(block_.first_query + query);
    CandidateList& candidates = list(query);
    const int64_t before = candidates.size();
    candidates.push_group(values, rows_in(panel), limits_[static_cast<size_t>(query)] + bound,
                          {offset, bound, relative_, context_.kind == KeyKind::l2}, first_row_of(panel));
    if (context_.kept != nullptr) candidates.keep_since(before, [&](uint32_t row) { return context_.keeps_row(row); });
    if (const KthAgain again(context_.base, candidates); again) {
      const int64_t passed = candidates.size();
      candidates.keep_since(before, [&](uint32_t row) { return !again(row); });
      // Where half of all rows come so far, blocks of keys take less time.
      dense_.count(query, first_row_of(panel) + rows_in(panel), (passed - candidates.size()) / 2);
    }
    if (candidates.has_room()) return;
    dense_.count(query, first_row_of(panel) + rows_in(panel), make_room(query));
    set_limit(query);
  }

 private:
  static constexpr int64_t kShortestStretch = 16;  // panels
  static constexpr int64_t kLongestStretch = 256;

  // Few panels at a time where products do not decide, so that this shows soon.
  void scan(int64_t first, int64_t count) {
    const int64_t first_row = first_row_of(first);
    const int64_t end_row = first_row_of(first + count - 1) + rows_in(first + count - 1);
    const bool tried = dense_.begin(first_row, end_row);
    for (int64_t q = 0; q < block_.query_count; ++q) {
      if (dense_.takes(q, first_row)) limits_[static_cast<size_t>(q)] = std::numeric_limits<float>::lowest();
    }
    if (tried && screened_) screened_->scan(first, count);
    if (tried && !screened_) scan_panels(queries_, panels_, first, count, *this);
    if (!dense_.finish()) {
      stretch_ = std::min(2 * stretch_, kLongestStretch);
      return;
    }
    stretch_ = kShortestStretch;
    for (int64_t q = 0; q < block_.query_count; ++q) set_limit(q);
  }

  void set_limit(int64_t query) {
    const float key = largest_key(query);
    const float most = context_.kind == KeyKind::l2 ? square_above(key) : key + 2 * relative_ * key;
    limits_[static_cast<size_t>(query)] = most - context_.queries.packed().offset(block_.first_query + query);
  }

  const PanelBase panels_;
  DenseScan dense_;
  int64_t stretch_ = kShortestStretch;
  const float relative_;  // error of a value that is a sum of differences, beside the bound
  PanelQueries queries_;
  std::optional<ScreenedProduct> screened_;
};

}  // namespace

void scan_float_block(const ScanContext& context, const PackedRows& packed, const ScanBlock& block) {
  FloatBlockScan(context, packed, block).run();
}

}  // namespace kith
