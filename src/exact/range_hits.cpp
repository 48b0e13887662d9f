#include "exact/range_hits.hpp"

#include <kith/error.hpp>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kFirstSegment = 1 << 10;  // hits
constexpr int64_t kLargestSegment = 1 << 16;

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
  const int64_t capacity = std::clamp(2 * segments->capacity, kFirstSegment, kLargestSegment);
  HostArray<Hit> next;
  try {
    next = HostArray<Hit>(capacity, "the rows in range", resources_);
  } catch (const OutOfMemory&) {
    overflowed_ = true;
    return false;
  }
  if (segments->capacity > 0) segments->full.push_back(std::move(segments->last));
  segments->last = std::move(next);
  segments->end = segments->last.data();
  segments->used = 0;
  segments->capacity = capacity;
  return true;
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
void RangeHits::for_each(const Segments& segments, const Use& use) {
  for (const HostArray<Hit>& segment : segments.full) std::for_each(segment.begin(), segment.end(), use);
  std::for_each(segments.end, segments.end + segments.used, use);
}

CollectedHits RangeHits::collect(int64_t queries, ProgressMeter& meter) {
  CollectedHits collected(queries, resources_);
  int64_t* const offsets = collected.offsets();
  for (const Segments& segments : slots_) {
    for_each(segments, [&](const Hit& hit) { ++offsets[hit.query + 1]; });
  }
  const HostArray<int64_t> places = collected.make_room(resources_);
  auto* const next = places.data();
  uint64_t* const neighbors = collected.neighbors();
  for (Segments& segments : slots_) {
    for_each(segments, [&](const Hit& hit) { neighbors[next[hit.query]++] = hit.neighbor; });
    segments = Segments();
  }
  parallel_for(queries, meter, resources_,
               [&](int64_t query, int) { std::sort(neighbors + offsets[query], neighbors + offsets[query + 1]); });
  return collected;
}

}  // namespace kith
