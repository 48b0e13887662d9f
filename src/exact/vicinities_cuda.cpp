#include "exact/vicinities_cuda.hpp"

#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/knn_windows_cuda.hpp"
#include "kernels/matrix/marked_rows_cuda.hpp"
#include "kernels/matrix/vicinity_bounds.hpp"
#include "kernels/rerank/choose_leader_cuda.hpp"
#include "kernels/rerank/equal_rows_cuda.hpp"
#include "kernels/select/sort_pairs_cuda.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kTileQueries = 16384;
constexpr double kRadius = 4;  // a vicinity's radius over its leader's reach
constexpr double kNextLeader =
    1.5;  // what an inner product's radius adds to the reach, over the next leader's distance
constexpr double kSmallShare = 0.5;  // of the base's radius: a vicinity that is wider tells hardly more apart
constexpr int kMostRounds = 6;
constexpr double kFewerRows = 0.75;
constexpr double kMostOfRows = 0.5;  // the share of rows in a vicinity where products tell them no better apart

// A read-only list of failed queries.
FailedQueries numbers(const uint32_t* order) { return {nullptr, const_cast<uint32_t*>(order)}; }

}  // namespace

VicinityLayout::VicinityLayout(const SearchTask& task, int64_t failed, int64_t rows) {
  const int64_t unit = task.shape.metric == Metric::cosine ? 1 : 0;
  tile = std::clamp<int64_t>(failed, kMostLeaders, kTileQueries);
  leaders = take<uint32_t>(kMostLeaders);
  most = take<float>(kMostLeaders);
  radii = take<double>(kMostLeaders);
  followers = take<uint32_t>(kMostLeaders + 1);
  totals = take<uint32_t>(kMostLeaders);
  parts = take<uint32_t>(kMostLeaders, marked_parts(rows));
  marks = take<uint32_t>(kMostLeaders, mark_words(rows));
  keys = take<float>(kMostLeaders, tile);
  tile_norms = take<double>(tile, unit);
  for (Slot<uint32_t>& one : chosen) one = take<uint32_t>(failed);
  for (Slot<uint32_t>& one : order) one = take<uint32_t>(failed);
  sort = take<std::byte>(sort_pairs_bytes(failed));
  values = take_rows(failed, task.shape.cols, task.shape.query_dtype);
  value_norms = take<double>(failed, unit);
  found = take<uint64_t>(failed, task.k);
  numbers = take<uint32_t>(rows);
  stored = take<uint32_t>(rows);
  places = take<uint32_t>(rows, unit);
  norms = take<double>(rows, unit);
  equal = take<std::byte>(equal_rows_bytes(rows));
}

Vicinities::Vicinities(const SearchRows& rows, int64_t failed, int64_t base_rows, const Resources& resources)
    : ProductStep(rows),
      resources_(resources),
      own_(task_, failed, base_rows),
      memory_(own_.bytes, "queries that lie close together", rows.shared_context(), resources) {}

// The `count` marked rows of a set as a base.
ProductBase Vicinities::listed(const ProductBase& base, int64_t set, int64_t count) const {
  ListMarkedTask task;
  task.marks = in(own_.marks) + set * mark_words(base.rows.count);
  task.rows = base.rows.count;
  task.parts = in(own_.parts) + set * marked_parts(base.rows.count);
  const auto list = [&](const uint32_t* numbers, int64_t first_number, const Slot<uint32_t>& slot) {
    task.numbers = numbers;
    task.first_number = static_cast<uint32_t>(first_number);
    task.list = in(slot);
    launch_list_marked(task, stream_);
    return task.list;
  };
  ProductBase part;
  part.first_row = base.first_row;
  part.numbers = list(base.numbers, base.first_row, own_.numbers);
  part.rows = base.rows;
  part.rows.count = count;
  part.rows.list = part.numbers;
  if (base.rows.list != base.numbers) {  // rows that were brought together, or a part of such
    part.rows.list = list(base.rows.list, 0, own_.stored);
  } else if (base.rows.list == nullptr) {
    part.rows.first_listed = static_cast<uint32_t>(base.first_row);
  }
  if (base.rows.inverse_norms != nullptr) {
    launch_keep_norms(base.rows.inverse_norms, list(nullptr, 0, own_.places), 0, count, in(own_.norms), stream_);
    part.rows.inverse_norms = in(own_.norms);
  }
  return part;
}

std::optional<ProductBase> Vicinities::unequal_rows(const ProductBase& base) const {
  if (base.kept != nullptr) return std::nullopt;  // rows that a filter leaves out are among those that are compared
  launch_mark_unequal({base.rows, task_.shape.cols, task_.k, in(own_.marks), in(own_.equal)}, stream_);
  rows_.context().fill(in(own_.totals), 0, 1);
  launch_count_marked({in(own_.marks), 1, base.rows.count, in(own_.parts), in(own_.totals)}, stream_);
  const uint32_t left = read(in(own_.totals));
  if (static_cast<double>(left) > kFewerRows * static_cast<double>(base.rows.count)) return std::nullopt;
  return listed(base, 0, left);
}

// The chosen leaders among the failed queries, and what is known of their vicinities.
struct Vicinities::Leaders {
  DeviceRowsView rows;
  std::array<double, kMostLeaders> radii = {};  // infinite: leads no one
  std::array<float, kMostLeaders> most = {};
  double distance_factor = 1;
  bool any = false;

  // The leader's values, where they are floats; else null.
  const float* centre(int64_t leader) const {
    return rows.dtype == DType::f32 ? static_cast<const float*>(rows.data) + leader * rows.stride : nullptr;
  }
};

// Samples failed queries evenly as leaders. Skips queries whose reach spans the base and queries that another leader
// covers.
Vicinities::Leaders Vicinities::choose_leaders(int64_t count, const DeviceRowsView& queries,
                                               const ProductBase& base) const {
  const int64_t sampled = std::min({kMostLeaders, count, plan_.query_tile, product().queries});
  launch_sample_numbers(failed().queries, count, sampled, in(own_.leaders), stream_);
  Leaders leaders;
  leaders.rows = gather(numbers(in(own_.leaders)), queries, 0, sampled);
  DistanceTask apart{leaders.rows, leaders.rows, task_.shape.cols, kind_between_queries(kind_)};
  apart.keys = reinterpret_cast<uint32_t*>(in(own_.keys));
  apart.stride = sampled;
  apart.form = KeyForm::plain;
  launch_distance(apart, stream_);

  std::array<uint32_t, kMostLeaders> limits;
  const HostArray<float> keys(sampled * sampled, "the distances of leaders", resources_);
  BaseBounds bounds;
  rows_.context().copy_values(limits.data(), at(layout_.failed_limits), sampled);
  rows_.context().copy_values(keys.data(), in(own_.keys), sampled * sampled);
  rows_.context().copy_values(&bounds, base.operands.bounds, 1);
  rows_.context().synchronize();
  const double longest = (double{bounds.rows.norm} + bounds.rows.residual) / operand_scale(bounds.sample_largest);
  const bool product = kind_ == KeyKind::inner_product;
  if (product) leaders.distance_factor = longest;
  leaders.radii.fill(HUGE_VAL);
  for (int64_t i = 0; i < sampled; ++i) {
    const auto place = static_cast<size_t>(i);
    if (limits[place] == 0) continue;
    const double reach = reach_of_limit(kind_, key_of_ordered(limits[place]));
    const double radius = radius_of(leaders, i, reach, keys.data());
    const float most = key_within(kind_, radius);
    if ((!product && !(radius <= longest * kSmallShare)) || !std::isfinite(most)) continue;
    const auto follows = [&](int64_t other) {
      const double theirs = leaders.radii[static_cast<size_t>(other)];
      if (!(theirs < HUGE_VAL) || (!product && theirs > 2 * radius)) return false;
      const float key = keys.data()[other * sampled + i];
      return leaders.distance_factor * distance_of_key(kind_between_queries(kind_), key) + reach <= theirs;
    };
    bool alone = true;
    for (int64_t other = 0; other < i && alone; ++other) alone = !follows(other);
    if (!alone) continue;
    leaders.radii[place] = radius;
    leaders.most[place] = most;
    leaders.any = true;
  }
  return leaders;
}

// For inner products a leader's own reach says little about its followers, so the reach of the next leader is
// used.
double Vicinities::radius_of(const Leaders& leaders, int64_t leader, double reach, const float* keys) const {
  if (kind_ != KeyKind::inner_product) return kRadius * reach;
  const int64_t count = leaders.rows.count;
  float next = HUGE_VALF;
  for (int64_t other = 0; other < count; ++other) {
    if (other != leader) next = std::min(next, keys[leader * count + other]);
  }
  return count == 1 ? reach : reach + kNextLeader * leaders.distance_factor * distance_of_key(KeyKind::l2, next);
}

// A set of marks for each leader.
void Vicinities::mark_rows(const Leaders& leaders, const ProductBase& base) const {
  const int64_t count = leaders.rows.count;
  rows_.context().copy_values(in(own_.most), leaders.most.data(), count);
  rows_.context().copy_values(in(own_.radii), leaders.radii.data(), count);
  round_queries(leaders.rows, 0, false, base);
  RangeWindowTask window;
  window.kind = kind_;
  window.type = product().operands;
  window.cols = task_.shape.cols;
  window.queries = count;
  window.query_bounds = at(layout_.query_bounds);
  window.base_bounds = base.operands.bounds;
  window.thresholds = at(layout_.failed_thresholds);
  window.key_limits = at(layout_.failed_limits);
  window.each = in(own_.most);
  launch_range_windows(window, stream_);
  launch_product<ProductMarks>(product().engine, operands_of(count, base), schedule(count, base),
                               {window.thresholds, in(own_.marks)}, stream_);
  rows_.context().fill(in(own_.totals), 0, count);
  launch_count_marked({in(own_.marks), count, base.rows.count, in(own_.parts), in(own_.totals)}, stream_);
}

// Sorts the failed queries by leader, in the leaders' order; queries without a leader come last.
const uint32_t* Vicinities::order_followers(const Leaders& leaders, int64_t count,
                                            const DeviceRowsView& queries) const {
  const int64_t stride = own_.tile;
  rows_.context().fill(in(own_.followers), 0, leaders.rows.count + 1);
  for (int64_t first = 0; first < count; first += own_.tile) {
    DeviceRowsView some = queries;
    some.list = failed().queries + first;
    some.first_listed = 0;
    some.count = std::min(own_.tile, count - first);
    if (queries.inverse_norms != nullptr) {
      launch_keep_norms(queries.inverse_norms, some.list, 0, some.count, in(own_.tile_norms), stream_);
      some.inverse_norms = in(own_.tile_norms);
    }
    DistanceTask apart{leaders.rows, some, task_.shape.cols, kind_between_queries(kind_)};
    apart.keys = reinterpret_cast<uint32_t*>(in(own_.keys));
    apart.stride = stride;
    apart.form = KeyForm::plain;
    launch_distance(apart, stream_);
    ChooseLeaderTask choose;
    choose.kind = kind_;
    choose.queries = some.list;
    choose.count = some.count;
    choose.key_limits = at(layout_.key_limits);
    choose.keys = in(own_.keys);
    choose.stride = stride;
    choose.distance_factor = leaders.distance_factor;
    choose.radii = in(own_.radii);
    choose.leaders = static_cast<int>(leaders.rows.count);
    choose.chosen = in(own_.chosen[0]) + first;
    choose.followers = in(own_.followers);
    launch_choose_leader(choose, stream_);
  }
  rows_.context().copy_values(in(own_.order[0]), failed().queries, count);
  constexpr int kBits = 9;
  static_assert(kMostLeaders < 1 << kBits);
  SortPairsTask sort;
  for (const int i : {0, 1}) {
    sort.keys[i] = in(own_.chosen[i]);
    sort.values[i] = in(own_.order[i]);
  }
  sort.count = count;
  sort.bits = kBits;
  sort.memory = in(own_.sort);
  return sort.values[launch_sort_pairs(sort, stream_)];
}

// Gathers the queries with these numbers.
DeviceRowsView Vicinities::gather_in(const uint32_t* order, int64_t count, const DeviceRowsView& queries) const {
  const bool unit = queries.inverse_norms != nullptr;
  const GatheredQueries to{in(own_.values), unit ? in(own_.value_norms) : nullptr};
  launch_gather_failed(numbers(order), {queries, task_.shape.cols, nullptr, nullptr, 0, count}, to, stream_);
  return {to.rows, queries.dtype, task_.shape.cols, count, to.inverse_norms};
}

bool Vicinities::search_all(int64_t count, const DeviceRowsView& queries, const ProductBase& rows, uint64_t* neighbors,
                            const Use& use) const {
  if (!use({gather_in(failed().queries, count, queries), rows, in(own_.found)})) return false;
  launch_scatter_failed(failed(), 0, count, in(own_.found), task_.k, neighbors, stream_);
  return true;
}

int64_t Vicinities::search(int64_t count, int64_t least, const DeviceRowsView& queries, const ProductBase& base,
                           uint64_t* neighbors, const Use& use) const {
  const bool narrower = has_differences(kind_);  // others have no centre
  for (int round = 0; round < kMostRounds && count >= least; ++round) {
    const Leaders leaders = choose_leaders(count, queries, base);
    if (!leaders.any) break;
    const auto all_leaders = static_cast<size_t>(leaders.rows.count);
    mark_rows(leaders, base);
    const uint32_t* const order = order_followers(leaders, count, queries);
    std::array<uint32_t, kMostLeaders + 1> followers = {};
    std::array<uint32_t, kMostLeaders> rows = {};
    rows_.context().copy_values(followers.data(), in(own_.followers), leaders.rows.count + 1);
    rows_.context().copy_values(rows.data(), in(own_.totals), leaders.rows.count);
    rows_.context().synchronize();
    const int64_t led = count - followers[all_leaders];
    const DeviceRowsView gathered = gather_in(order, led, queries);
    int64_t first = 0;
    int64_t left = 0;
    for (size_t leader = 0; leader <= all_leaders; ++leader) {
      const int64_t some = followers[leader];
      const int64_t start = first;
      first += some;
      // An unreliable window has no rows.
      const double most_rows = static_cast<double>(base.rows.count) * (narrower ? 1.0 : kMostOfRows);
      const bool pays = leader < all_leaders && some >= least && rows[leader] >= task_.k &&
                        static_cast<double>(rows[leader]) <= most_rows;
      if (pays) {
        ProductBase near = listed(base, static_cast<int64_t>(leader), rows[leader]);
        near.centre = leaders.centre(static_cast<int64_t>(leader));
        if (use({slice_rows(gathered, start, some), near, in(own_.found) + start * task_.k, narrower})) continue;
      }
      rows_.context().copy_values(failed().queries + left, order + start, some);
      left += some;
    }
    // The remaining queries get their lists later.
    launch_scatter_failed(numbers(order), 0, led, in(own_.found), task_.k, neighbors, stream_);
    const bool little_done = left > count - count / 8;
    count = left;
    if (little_done) break;
  }
  return count;
}

}  // namespace kith
