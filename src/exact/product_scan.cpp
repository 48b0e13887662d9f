#include "exact/product_scan.hpp"

#include <algorithm>
#include <limits>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kColumnsBetweenCheckpoints = 1 << 17;  // of panels: tens of milliseconds of work

// One block of queries against a range of panels.
class BlockScan final : public PanelHits {
 public:
  BlockScan(const ScanContext& context, const PackedBase& packed, int64_t first_row, int64_t first_query,
            int64_t query_count, int64_t split, int slot)
      : context_(context),
        packed_(packed),
        panels_(packed.panels()),
        first_row_(first_row),
        first_query_(first_query),
        query_count_(query_count),
        split_(split),
        slot_(slot) {
    const int64_t width = context.queries.panel_width();
    limits_.assign(static_cast<size_t>((query_count + width - 1) / width * width), -kInfinity);
    for (int64_t q = 0; q < query_count; ++q) set_limit(q);
    queries_ = context.queries.panels(first_query, query_count, limits_.data());
  }

  void run(int64_t first_panel, int64_t end_panel) {
    const int64_t step = std::max<int64_t>(1, kColumnsBetweenCheckpoints / panels_.cols);
    for (int64_t panel = first_panel; panel < end_panel; panel += step) {
      const int64_t count = std::min(step, end_panel - panel);
      scan_panels(queries_, panels_, panel, count, *this);
      context_.meter.add(query_count_ * count * packed_.rows_per_panel());
      context_.meter.checkpoint();
    }
  }

  void on_hit(int64_t query, int64_t panel, const float* values) override {
    const float bound = queries_.bound(query).at(panels_.norms[panel]);
    const float offset = context_.queries.offset(first_query_ + query);
    CandidateList& list = context_.list(first_query_ + query, split_);
    const int64_t width = packed_.rows_per_panel();
    const int64_t count = std::min(width, packed_.rows() - panel * width);
    const float limit = limits_[static_cast<size_t>(query)] + bound;
    const int64_t before = list.size();
    list.push_group(values, count, limit, {offset, bound, context_.kind == KeyKind::l2},
                    static_cast<uint32_t>(first_row_ + panel * width));
    if (context_.kept != nullptr) list.keep_since(before, [&](uint32_t row) { return context_.keeps_row(row); });
    if (list.has_room()) return;
    context_.make_room(first_query_ + query, split_, slot_);
    set_limit(query);
  }

 private:
  void set_limit(int64_t query) {
    CandidateList& list = context_.list(first_query_ + query, split_);
    context_.exchange_threshold(first_query_ + query, &list);
    const float most = context_.kind == KeyKind::l2 ? square_above(list.threshold()) : list.threshold();
    limits_[static_cast<size_t>(query)] = most - context_.queries.offset(first_query_ + query);
  }

  const ScanContext& context_;
  const PackedBase& packed_;
  const PanelBase panels_;
  const int64_t first_row_;  // of the packed rows, in the scanned base
  const int64_t first_query_;
  const int64_t query_count_;
  const int64_t split_;
  const int slot_;
  std::vector<float> limits_;
  PanelQueries queries_;
};

void scan_packed(const ScanContext& context, const PackedBase& packed, int64_t first_row) {
  const int64_t block = context.plan.query_block;
  const int64_t splits = context.plan.row_splits;
  const int64_t blocks = (context.queries.size() + block - 1) / block;
  parallel_for(blocks * splits, context.meter, context.resources, [&](int64_t task, int slot) {
    // Rows first: when a query's later rows come, its earlier ones have lowered its threshold.
    const int64_t first_query = task % blocks * block;
    const int64_t split = task / blocks;
    const int64_t count = std::min(block, context.queries.size() - first_query);
    BlockScan scan(context, packed, first_row, first_query, count, split, slot);
    scan.run(packed.panel_count() * split / splits, packed.panel_count() * (split + 1) / splits);
  });
}

}  // namespace

void product_scan(const ScanContext& context, const PackedBase* ready, bool check_finite, int64_t first_row) {
  if (ready != nullptr && ready->rows_per_panel() == panel_shape().rows_per_panel) {
    context.queries.pack(ready->centre(), context.meter, context.resources);
    scan_packed(context, *ready, 0);
    return;
  }
  const MatrixView& base = context.base;
  const int64_t step = std::min(context.plan.panel_rows, base.rows());
  PackedBase packed(context.kind, choose_centre(context.kind, base), step, context.resources);
  context.queries.pack(packed.centre(), context.meter, context.resources);
  for (int64_t first = 0; first < base.rows(); first += step) {
    const MatrixView rows = base.slice(first, std::min(step, base.rows() - first));
    packed.pack(rows, check_finite, first_row + first, 0, context.meter, context.resources);
    scan_packed(context, packed, first);
  }
}

}  // namespace kith
