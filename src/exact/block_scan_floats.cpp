#include "exact/block_scan.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class FloatBlockScan final : public PanelHits, private BlockScan<float> {
 public:
  FloatBlockScan(const ScanContext& context, const PackedBase& packed, const ScanBlock& block)
      : BlockScan(context, packed, block, -kInfinity),
        panels_(packed.panels()),
        relative_(is_product(context.kind) ? 0.0f : direct_error(panels_.cols)) {
    for (int64_t q = 0; q < block.query_count; ++q) set_limit(q);
    queries_ = context.queries.panels(block.first_query, block.query_count, limits_.data());
    if (packed.format() != PanelFormat::screened || context.plan.format != PanelFormat::screened) return;
    screen_.emplace(*this, packed.screen_panels(),
                    context.queries.screen_panels(block.first_query, block.query_count, limits_.data()));
  }

  void run() {
    for_panels(panels_.cols, [&](int64_t first, int64_t count) {
      if (screen_) return screen_->scan(first, count);
      scan_panels(queries_, panels_, first, count, *this);
    });
  }

  void on_hit(int64_t query, int64_t panel, const float* values) override {
    const float bound = queries_.bound(query).at(panels_.norms[panel]);
    const float offset = context_.queries.offset(block_.first_query + query);
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
  // Looks at rounded rows first, as long as they rule most of them out, and multiplies what they do not in f32.
  class Screen final : public PanelHits {
   public:
    Screen(FloatBlockScan& scan, const RoundedBase& base, const RoundedQueries& queries)
        : scan_(scan), base_(base), queries_(queries) {}

    void scan(int64_t first, int64_t count) {
      for (int64_t at = first; at < first + count; at += kStretch) {
        const int64_t panels = std::min(kStretch, first + count - at);
        if (unscreened_ > 0) {
          --unscreened_;
          scan_panels(scan_.queries_, scan_.panels_, at, panels, scan_);
          continue;
        }
        passed_ = 0;
        scan_rounded_panels(queries_, base_, at, panels, *this);
        if (passed_ > panels * queries_.count / 2) unscreened_ = kUnscreenedStretches;
      }
    }

    void on_hit(int64_t query, int64_t panel, const float*) override {
      ++passed_;
      alignas(64) float values[CandidateList::kLargestGroup];
      panel_values(scan_.queries_, scan_.panels_, query, panel, values);
      scan_.on_hit(query, panel, values);
    }

   private:
    static constexpr int64_t kStretch = 16;  // panels
    static constexpr int64_t kUnscreenedStretches = 4;
    FloatBlockScan& scan_;
    const RoundedBase base_;
    const RoundedQueries queries_;
    int64_t passed_ = 0;
    int64_t unscreened_ = 0;  // stretches to come
  };

  void set_limit(int64_t query) {
    const float key = largest_key(query);
    const float most = context_.kind == KeyKind::l2 ? square_above(key) : key + 2 * relative_ * key;
    limits_[static_cast<size_t>(query)] = most - context_.queries.offset(block_.first_query + query);
  }

  const PanelBase panels_;
  const float relative_;  // error of a value that is a sum of differences, beside the bound
  PanelQueries queries_;
  std::optional<Screen> screen_;
};

}  // namespace

void scan_float_block(const ScanContext& context, const PackedBase& packed, const ScanBlock& block) {
  FloatBlockScan(context, packed, block).run();
}

}  // namespace kith
