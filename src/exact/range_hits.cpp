#include "exact/range_hits.hpp"

#include <kith/error.hpp>

#include "exact/neighbor_sort.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kFirstSegment = 1 << 11;  // words
constexpr int64_t kLargestSegment = RangeHits::kLargestSegmentBytes / 8;

// A run's first word.
int64_t query_of(uint64_t run) { return static_cast<int64_t>(run >> 32); }
int64_t count_of(uint64_t run) { return static_cast<int64_t>(run & 0xFFFFFFFFu); }

}  // namespace

CollectedHits::CollectedHits(int64_t queries, const Resources& resources)
    : offsets_(queries + 1, "the ranges' offsets", resources), queries_(queries) {
  std::fill_n(offsets(), queries + 1, int64_t{0});
}

HostArray<int64_t> CollectedHits::make_room(const Resources& resources) {
  for (int64_t q = 0; q < queries_; ++q) offsets()[q + 1] += offsets()[q];
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
void RangeHits::for_each_run(const Segments& segments, const Use& use) {
  for (size_t i = 0; i < segments.all.size(); ++i) {
    const uint64_t* at = segments.all[i].data();
    const uint64_t* const end = at + segments.used[i];
    while (at < end) {
      const int64_t query = query_of(*at);
      const int64_t count = count_of(*at);
      use(query, at + 1, count);
      at += count + 1;
    }
  }
}

namespace {

// Of each thread; none where they are few, or there is no memory: then they are compared.
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
  int64_t most = 0;
  for (int64_t query = 0; query < queries; ++query) most = std::max(most, offsets[query + 1] - offsets[query]);
  const HostArray<uint64_t> scratch = sort_scratch(most, resources);
  parallel_for(queries, meter, resources, [&](int64_t query, int slot) {
    uint64_t* const mine = scratch.size() == 0 ? nullptr : scratch.data() + slot * most;
    sort_neighbors(neighbors + offsets[query], offsets[query + 1] - offsets[query], mine);
  });
}

CollectedHits RangeHits::collect(int64_t queries, ProgressMeter& meter) {
  CollectedHits collected(queries, resources_);
  int64_t* const offsets = collected.offsets();
  for (const Segments& segments : slots_) {
    for_each_run(segments, [&](int64_t query, const uint64_t*, int64_t count) { offsets[query + 1] += count; });
  }
  const HostArray<int64_t> places = collected.make_room(resources_);
  auto* const next = places.data();
  uint64_t* const neighbors = collected.neighbors();
  for (Segments& segments : slots_) {
    for_each_run(segments, [&](int64_t query, const uint64_t* run, int64_t count) {
      std::copy_n(run, count, neighbors + next[query]);
      next[query] += count;
    });
    segments = Segments();
  }
  sort_hits(collected, queries, meter, resources_);
  return collected;
}

}  // namespace kith
