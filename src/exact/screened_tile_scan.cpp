#include "exact/screened_tile_scan.hpp"

#include "core/infinity.hpp"
#include "kernels/distance/error_bound.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr double kWorthwhile = 0.5;  // of all rows, read although they were screened
constexpr int64_t kAlone = 4;        // a row by itself takes as long as so many in a run

}  // namespace

ScreenedTileScan::ScreenedTileScan(const ScanContext& context, const PackedRows& packed, int64_t split, TileScan& scan)
    : context_(context),
      base_(packed.screen_panels()),
      rows_per_panel_(packed.rows_per_panel()),
      split_(split),
      scan_(scan),
      limits_(static_cast<size_t>(context.queries.size() + kMostQueriesPerPanel), -kInfinity),
      queries_(context.queries.packed().screen_panels(0, context.queries.size(), limits_.data())),
      use_(kWorthwhile) {}

void ScreenedTileScan::run(int64_t first_panel, int64_t end_panel) {
  for (int64_t panel = first_panel; panel < end_panel; panel += ScreenUse::kStretch) {
    const int64_t panels = std::min(ScreenUse::kStretch, end_panel - panel);
    const int64_t first = panel * rows_per_panel_;
    const int64_t end = std::min(first + panels * rows_per_panel_, context_.base.rows());
    for (int64_t q = 0; q < context_.queries.size(); ++q) set_limit(q);
    if (std::isinf(limits_[0]) || !use_.screens_next()) {
      scan_.run(first, end);
      continue;
    }
    read_ = 0;
    scan_rounded_panels(queries_, base_, panel, panels, *this);
    use_.count((end - first) * context_.queries.size(), read_);
    context_.meter.add(context_.queries.size() * (end - first));
    context_.meter.checkpoint();
  }
}

void ScreenedTileScan::on_hit(int64_t query, int64_t panel, const float* rounded) {
  const int64_t first = panel * rows_per_panel_;
  const int64_t count = std::min(rows_per_panel_, context_.base.rows() - first);
  const float limit = queries_.limit(query, base_, panel);
  const auto passes = [&](int64_t i) { return !(rounded[i] > limit); };  // a NaN does
  int64_t passed = 0;
  for (int64_t i = 0; i < count; ++i) passed += passes(i);
  if (passed * kAlone >= count) {
    read_ += count;
    scan_.scan_tile(query, context_.base.slice(first, count), first);
  } else {
    read_ += passed * kAlone;
    for (int64_t i = 0; i < count; ++i) {
      if (passes(i)) scan_.scan_tile(query, context_.base.slice(first + i, 1), first + i);
    }
  }
  set_limit(query);
}

// On value + offset, which is the key, or its square.
void ScreenedTileScan::set_limit(int64_t query) {
  CandidateList& list = context_.list(query, split_);
  context_.exchange_threshold(query, &list);
  const float most = context_.kind == KeyKind::l2 ? square_above(list.limit()) : list.limit();
  limits_[static_cast<size_t>(query)] = most - context_.queries.packed().offset(query);
}

}  // namespace kith
