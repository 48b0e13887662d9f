#include "exact/block_scan.hpp"
#include "kernels/panels/screened_product.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace kith {
namespace {

// A panel's hits come to a candidate list together.
static_assert(kMostRowsPerPanel <= CandidateList::kLargestGroup);
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class FloatBlockScan final : public PanelHits, private BlockScan<float> {
 public:
  FloatBlockScan(const ScanContext& context, const PackedRows& packed, const ScanBlock& block)
      : BlockScan(context, packed, block, -kInfinity),
        panels_(packed.panels()),
        relative_(is_product(context.kind) ? 0.0f : direct_error(panels_.cols)) {
    for (int64_t q = 0; q < block.query_count; ++q) set_limit(q);
    queries_ = context.queries.packed().panels(block.first_query, block.query_count, limits_.data());
    if (packed.format() != PanelFormat::screened || context.plan.format != PanelFormat::screened) return;
    const RoundedQueries rounded =
        context.queries.packed().screen_panels(block.first_query, block.query_count, limits_.data());
    screened_.emplace(queries_, panels_, rounded, packed.screen_panels(), *this);
  }

  void run() {
    for_panels(panels_.cols, [&](int64_t first, int64_t count) {
      if (screened_) return screened_->scan(first, count);
      scan_panels(queries_, panels_, first, count, *this);
    });
  }

  void on_hit(int64_t query, int64_t panel, const float* values) override {
    const float bound = queries_.bound(query).at(panels_.norms[panel]);
    const float offset = context_.queries.packed().offset(block_.first_query + query);
    CandidateList& candidates = list(query);
    const int64_t before = candidates.size();
    candidates.push_group(values, rows_in(panel), limits_[static_cast<size_t>(query)] + bound,
                          {offset, bound, relative_, context_.kind == KeyKind::l2}, first_row_of(panel));
    if (context_.kept != nullptr) candidates.keep_since(before, [&](uint32_t row) { return context_.keeps_row(row); });
    if (candidates.has_room()) return;
    make_room(query);
    set_limit(query);
  }

 private:
  void set_limit(int64_t query) {
    const float key = largest_key(query);
    const float most = context_.kind == KeyKind::l2 ? square_above(key) : key + 2 * relative_ * key;
    limits_[static_cast<size_t>(query)] = most - context_.queries.packed().offset(block_.first_query + query);
  }

  const PanelBase panels_;
  const float relative_;  // error of a value that is a sum of differences, beside the bound
  PanelQueries queries_;
  std::optional<ScreenedProduct> screened_;
};

}  // namespace

void scan_float_block(const ScanContext& context, const PackedRows& packed, const ScanBlock& block) {
  FloatBlockScan(context, packed, block).run();
}

}  // namespace kith
