#include "exact/range_hits.hpp"

#include <kith/error.hpp>

#include "exact/neighbor_sort.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kFirstSegment = 1 << 11;  // words
constexpr int64_t kLargestSegment = RangeHits::kLargestSegmentBytes / 8;

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
  return true;
}

void RangeHits::add(int slot, int64_t query, const uint64_t* neighbors, int64_t count) {
  Segments& segments = slots_[static_cast<size_t>(slot)];
  segments.counted += count;
  while (count > 0 && !overflowed_.load(std::memory_order_relaxed)) {
    const int64_t room = segments.all.empty() ? 0 : segments.all.back().size() - segments.used.back() - 1;
    if (room < 1) {
      if (!grow(&segments)) return;
      continue;
    }
    const int64_t here = std::min(room, count);
    uint64_t* const to = segments.all.back().data() + segments.used.back();
    to[0] = static_cast<uint64_t>(query) << 32 | static_cast<uint64_t>(here);
    std::copy_n(neighbors, here, to + 1);
    segments.used.back() += here + 1;
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
      const auto query = static_cast<int64_t>(*at >> 32);
      const auto count = static_cast<int64_t>(*at & 0xFFFFFFFFu);
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
    uint64_t* const first = neighbors + offsets[query];
    const int64_t count = offsets[query + 1] - offsets[query];
    if (!std::is_sorted(first, first + count)) sort_neighbors(first, count, mine);  // a run of products is sorted
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
