#include "exact/block_scan.hpp"

#include <algorithm>
#include <limits>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class FloatBlockScan final : public PanelHits {
 public:
  FloatBlockScan(const ScanContext& context, const PackedBase& packed, const ScanBlock& block)
      : context_(context),
        packed_(packed),
        block_(block),
        panels_(packed.panels()),
        relative_(is_product(context.kind) ? 0.0f : direct_error(panels_.cols)) {
    const int64_t width = context.queries.panel_width();
    limits_.assign(static_cast<size_t>((block.query_count + width - 1) / width * width), -kInfinity);
    for (int64_t q = 0; q < block.query_count; ++q) set_limit(q);
    queries_ = context.queries.panels(block.first_query, block.query_count, limits_.data());
  }

  void run() {
    const int64_t step = panels_between_checkpoints(panels_.cols);
    for (int64_t panel = block_.first_panel; panel < block_.end_panel; panel += step) {
      const int64_t count = std::min(step, block_.end_panel - panel);
      scan_panels(queries_, panels_, panel, count, *this);
      context_.meter.add(block_.query_count * count * packed_.rows_per_panel());
      context_.meter.checkpoint();
    }
  }

  void on_hit(int64_t query, int64_t panel, const float* values) override {
    const float bound = queries_.bound(query).at(panels_.norms[panel]);
    const float offset = context_.queries.offset(block_.first_query + query);
    CandidateList& list = context_.list(block_.first_query + query, block_.split);
    const int64_t width = packed_.rows_per_panel();
    const int64_t count = std::min(width, packed_.rows() - panel * width);
    const float limit = limits_[static_cast<size_t>(query)] + bound;
    const int64_t before = list.size();
    list.push_group(values, count, limit, {offset, bound, relative_, context_.kind == KeyKind::l2},
                    static_cast<uint32_t>(block_.first_row + panel * width));
    if (context_.kept != nullptr) list.keep_since(before, [&](uint32_t row) { return context_.keeps_row(row); });
    if (list.has_room()) return;
    context_.make_room(block_.first_query + query, block_.split, block_.slot);
    set_limit(query);
  }

 private:
  void set_limit(int64_t query) {
    CandidateList& list = context_.list(block_.first_query + query, block_.split);
    context_.exchange_threshold(block_.first_query + query, &list);
    const float limit = list.limit();
    const float most = context_.kind == KeyKind::l2 ? square_above(limit) : limit + 2 * relative_ * limit;
    limits_[static_cast<size_t>(query)] = most - context_.queries.offset(block_.first_query + query);
  }

  const ScanContext& context_;
  const PackedBase& packed_;
  const ScanBlock& block_;
  const PanelBase panels_;
  const float relative_;  // error of a value that is a sum of differences, beside the bound
  std::vector<float> limits_;
  PanelQueries queries_;
};

}  // namespace

void scan_float_block(const ScanContext& context, const PackedBase& packed, const ScanBlock& block) {
  FloatBlockScan(context, packed, block).run();
}

}  // namespace kith
