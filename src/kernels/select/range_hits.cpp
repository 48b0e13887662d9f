#include "kernels/select/range_hits.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kFirstSegment = RangeHits::kFirstSegmentBytes / 8;  // words
constexpr int64_t kLargestSegment = RangeHits::kLargestSegmentBytes / 8;

// Layout of the first word of a run.
constexpr uint64_t kKeysAlone = uint64_t{1} << 31;
int64_t query_of(uint64_t run) { return static_cast<int64_t>(run >> 32); }
int64_t count_of(uint64_t run) { return static_cast<int64_t>(run & (kKeysAlone - 1)); }

// From this mean number of rows per run on, queries are sorted from their runs, since the list of runs is short then.
constexpr int64_t kFewestInRun = 64;

int64_t words_of_keys(int64_t keys) { return divide_up(keys, 2); }
static_assert(2 + RangeHits::kMostKeys / 2 <= kFirstSegment);

}  // namespace

CollectedHits::CollectedHits(int64_t queries, const Resources& resources)
    : offsets_(queries + 1, "the ranges' offsets", resources), queries_(queries) {
  std::fill_n(offsets(), queries + 1, int64_t{0});
}

HostArray<int64_t> CollectedHits::make_room(const Resources& resources) {
  neighbors_ = HostArray<uint64_t>(size(), "the rows in range", resources);
  HostArray<int64_t> places(queries_, "the ranges' offsets", resources);
  std::copy_n(offsets(), queries_, places.data());
  return places;
}

RangeHits::RangeHits(const Resources& resources)
    : resources_(resources), slots_(static_cast<size_t>(resources.threads())) {}

bool RangeHits::grow(Segments* segments) {
  const int64_t last = segments->all.empty() ? 0 : segments->all.back().size();
  try {
    segments->all.emplace_back(std::clamp(2 * last, kFirstSegment, kLargestSegment), "the rows in range", resources_);
  } catch (const OutOfMemory&) {
    overflowed_ = true;
    return false;
  }
  segments->used.push_back(0);
  segments->last_run = nullptr;
  return true;
}

uint64_t* RangeHits::open_run(Segments* segments, int64_t query) {
  const int64_t left = segments->all.empty() ? 0 : segments->all.back().size() - segments->used.back();
  const bool empty = segments->last_run != nullptr && count_of(*segments->last_run) == 0;
  if (segments->last_run != nullptr && left > 0 && (empty || query_of(*segments->last_run) == query)) {
    if (empty) *segments->last_run = static_cast<uint64_t>(query) << 32;
    return segments->last_run;
  }
  if (left < 2 && !grow(segments)) return nullptr;
  segments->last_run = segments->all.back().data() + segments->used.back()++;
  *segments->last_run = static_cast<uint64_t>(query) << 32;
  return segments->last_run;
}

std::span<uint64_t> RangeHits::room(int slot, int64_t query, int64_t most) {
  Segments& segments = slots_[static_cast<size_t>(slot)];
  if (overflowed_.load(std::memory_order_relaxed) || open_run(&segments, query) == nullptr) return {};
  const HostArray<uint64_t>& last = segments.all.back();
  const int64_t used = segments.used.back();
  return {last.data() + used, static_cast<size_t>(std::min(last.size() - used, most))};
}

void RangeHits::taken(int slot, int64_t count) {
  Segments& segments = slots_[static_cast<size_t>(slot)];
  segments.counted += count;
  if (overflowed_.load(std::memory_order_relaxed) || segments.last_run == nullptr) return;
  *segments.last_run += static_cast<uint64_t>(count);
  segments.used.back() += count;
}

void RangeHits::add(int slot, int64_t query, const uint64_t* neighbors, int64_t count) {
  while (count > 0) {
    const std::span<uint64_t> to = room(slot, query, count);
    const auto here = to.empty() ? count : static_cast<int64_t>(to.size());
    if (!to.empty()) std::copy_n(neighbors, here, to.data());
    taken(slot, here);
    neighbors += here;
    count -= here;
  }
}

void RangeHits::add_keys(int slot, int64_t query, uint32_t first_row, const float* keys, int64_t count) {
  Segments& segments = slots_[static_cast<size_t>(slot)];
  segments.counted += count;
  if (overflowed_.load(std::memory_order_relaxed)) return;
  const int64_t words = 2 + words_of_keys(count);
  const int64_t left = segments.all.empty() ? 0 : segments.all.back().size() - segments.used.back();
  if (left < words && !grow(&segments)) return;
  uint64_t* const run = segments.all.back().data() + segments.used.back();
  run[0] = static_cast<uint64_t>(query) << 32 | kKeysAlone | static_cast<uint64_t>(count);
  run[1] = first_row;
  std::memcpy(run + 2, keys, static_cast<size_t>(count) * sizeof(float));
  segments.used.back() += words;
  segments.last_run = nullptr;
}

int64_t RangeHits::counted() const {
  int64_t all = 0;
  for (const Segments& segments : slots_) all += segments.counted;
  return all;
}

void RangeHits::clear() {
  for (Segments& segments : slots_) segments = Segments();
  overflowed_ = false;
}

template <typename Use>
void RangeHits::for_each_run(const Use& use) const {
  for (const Segments& segments : slots_) {
    for (size_t i = 0; i < segments.all.size(); ++i) {
      const uint64_t* at = segments.all[i].data();
      const uint64_t* const end = at + segments.used[i];
      while (at < end) {
        const int64_t query = query_of(*at);
        const int64_t count = count_of(*at);
        NeighborRun run;
        run.count = static_cast<uint32_t>(count);
        if ((*at & kKeysAlone) != 0) {
          run.first_row = static_cast<uint32_t>(at[1]);
          run.keys = reinterpret_cast<const float*>(at + 2);
          at += 2 + words_of_keys(count);
        } else {
          run.packed = at + 1;
          at += 1 + count;
        }
        if (count > 0) use(query, run);
      }
    }
  }
}

namespace {

// The largest number of hits of a query.
int64_t most_of(int64_t queries, const int64_t* offsets) {
  int64_t most = 0;
  for (int64_t query = 0; query < queries; ++query) most = std::max(most, offsets[query + 1] - offsets[query]);
  return most;
}

// Sort memory per thread; empty if hits are few or memory is short: then sorting is by comparison.
HostArray<uint64_t> sort_scratch(int64_t most, const Resources& resources) {
  if (most < kFewestToSortByDigits) return {};
  try {
    return HostArray<uint64_t>(resources.threads() * most, "sorting", resources);
  } catch (const OutOfMemory&) {
    return {};
  }
}

}  // namespace

void sort_hits(CollectedHits& collected, int64_t queries, ProgressMeter& meter, const Resources& resources) {
  const int64_t* const offsets = collected.offsets();
  uint64_t* const neighbors = collected.neighbors();
  const int64_t most = most_of(queries, offsets);
  const HostArray<uint64_t> scratch = sort_scratch(most, resources);
  parallel_for(queries, meter, resources, [&](int64_t query, int slot) {
    uint64_t* const mine = scratch.size() == 0 ? nullptr : scratch.data() + slot * most;
    sort_neighbors(neighbors + offsets[query], offsets[query + 1] - offsets[query], mine);
  });
}

void RangeHits::count_rows(int64_t queries, int64_t* offsets) const {
  std::fill_n(offsets, queries + 1, int64_t{0});
  for_each_run([&](int64_t query, const NeighborRun& run) { offsets[query + 1] += run.count; });
  for (int64_t query = 0; query < queries; ++query) offsets[query + 1] += offsets[query];
}

bool RangeHits::sort_from_runs(int64_t queries, const int64_t* offsets, const SortedPlace& place, const SortedUse& use,
                               ProgressMeter& meter) const {
  int64_t count = 0;
  for_each_run([&](int64_t, const NeighborRun&) { ++count; });
  if (count == 0 || count * kFewestInRun > offsets[queries]) return false;
  const int64_t most = most_of(queries, offsets);
  HostArray<NeighborRun> runs;
  HostArray<int64_t> firsts;  // of each query's runs; the next one's are after them
  HostArray<uint64_t> scratch;
  try {
    runs = HostArray<NeighborRun>(count, "sorting", resources_);
    firsts = HostArray<int64_t>(queries + 2, "sorting", resources_);
    scratch = HostArray<uint64_t>(resources_.threads() * most, "sorting", resources_);
  } catch (const OutOfMemory&) {
    return false;
  }
  std::fill_n(firsts.data(), queries + 2, int64_t{0});
  for_each_run([&](int64_t query, const NeighborRun&) { ++firsts[query + 2]; });
  for (int64_t query = 0; query < queries; ++query) firsts[query + 2] += firsts[query + 1];
  for_each_run([&](int64_t query, const NeighborRun& run) { runs[firsts[query + 1]++] = run; });
  parallel_for(queries, meter, resources_, [&](int64_t query, int slot) {
    const int64_t found = offsets[query + 1] - offsets[query];
    if (found == 0) return;
    const std::span<NeighborRun> own(runs.data() + firsts[query],
                                     static_cast<size_t>(firsts[query + 1] - firsts[query]));
    uint64_t* const sorted = place(query, slot);
    sort_runs(own, found, sorted, scratch.data() + slot * most);
    use(query, sorted, found);
  });
  return true;
}

bool RangeHits::hand_out(int64_t queries, int64_t* offsets, const SortedUse& use, ProgressMeter& meter) const {
  count_rows(queries, offsets);
  const int64_t most = most_of(queries, offsets);
  HostArray<uint64_t> sorted;
  try {
    sorted = HostArray<uint64_t>(resources_.threads() * most, "sorting", resources_);
  } catch (const OutOfMemory&) {
    return false;
  }
  const auto place = [&](int64_t, int slot) { return sorted.data() + slot * most; };
  return sort_from_runs(queries, offsets, place, use, meter);
}

CollectedHits RangeHits::collect(int64_t queries, ProgressMeter& meter) {
  CollectedHits collected(queries, resources_);
  int64_t* const offsets = collected.offsets();
  count_rows(queries, offsets);
  const HostArray<int64_t> places = collected.make_room(resources_);
  const auto place = [&](int64_t query, int) { return collected.neighbors() + offsets[query]; };
  const bool sorted = sort_from_runs(queries, offsets, place, [](int64_t, const uint64_t*, int64_t) {}, meter);
  if (!sorted) {
    for_each_run([&](int64_t query, const NeighborRun& run) {
      copy_run(run, collected.neighbors() + places[query]);
      places[query] += run.count;
    });
  }
  for (Segments& segments : slots_) segments = Segments();
  if (!sorted) sort_hits(collected, queries, meter, resources_);
  return collected;
}

}  // namespace kith
