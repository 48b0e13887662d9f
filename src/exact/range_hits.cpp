#include "exact/range_hits.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kFirstSegment = 1 << 10;  // hits
constexpr int64_t kLargestSegment = 1 << 20;

}  // namespace

RangeHits::RangeHits(const Resources& resources)
    : resources_(resources), slots_(static_cast<size_t>(resources.threads())) {}

void RangeHits::grow(Segments* segments) const {
  const int64_t capacity = std::clamp(2 * segments->capacity, kFirstSegment, kLargestSegment);
  HostBuffer next(capacity * static_cast<int64_t>(sizeof(Hit)), "the rows in range", resources_);
  if (segments->capacity > 0) segments->full.push_back(std::move(segments->last));
  segments->last = std::move(next);
  segments->end = segments->last.as<Hit>();
  segments->used = 0;
  segments->capacity = capacity;
}

template <typename Use>
void RangeHits::for_each(const Segments& segments, const Use& use) {
  for (const HostBuffer& segment : segments.full) {
    const Hit* hits = segment.as<Hit>();
    std::for_each(hits, hits + segment.bytes() / static_cast<int64_t>(sizeof(Hit)), use);
  }
  std::for_each(segments.end, segments.end + segments.used, use);
}

CollectedHits RangeHits::collect(int64_t queries, ProgressMeter& meter) {
  CollectedHits collected;
  std::vector<int64_t>& offsets = collected.offsets;
  offsets.assign(static_cast<size_t>(queries) + 1, 0);
  for (const Segments& segments : slots_) {
    for_each(segments, [&](const Hit& hit) { ++offsets[hit.query + 1]; });
  }
  for (size_t q = 1; q < offsets.size(); ++q) offsets[q] += offsets[q - 1];
  collected.neighbors =
      HostBuffer(collected.size() * static_cast<int64_t>(sizeof(uint64_t)), "the rows in range", resources_);
  auto* const neighbors = collected.neighbors.as<uint64_t>();
  std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
  for (Segments& segments : slots_) {
    for_each(segments, [&](const Hit& hit) { neighbors[next[hit.query]++] = hit.neighbor; });
    segments = Segments();
  }
  parallel_for(queries, meter, resources_, [&](int64_t query, int) {
    const auto q = static_cast<size_t>(query);
    std::sort(neighbors + offsets[q], neighbors + offsets[q + 1]);
  });
  return collected;
}

}  // namespace kith
