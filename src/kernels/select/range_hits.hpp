// Collects the results of a range search for a batch of queries, whose number is not known in advance.
//
// Each thread fills segments of its own with runs, the results that come at once for a query: packed neighbours, or
// only keys if a whole stretch of rows is in range. collect() counts, then sorts the results of every query from its
// runs; it concatenates short runs first. Once the memory limit has no room left, results are only counted. Memory: 8
// bytes per result and per run, half of that for keys alone, and 8 more per result during collection; 16 per query.
// Sorting takes 8 more per result of the largest query of each thread, if the limit has room.
#pragma once

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "kernels/select/neighbor_sort.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace kith {

// Packed neighbours (core/ordered_key.hpp) of the batch's queries, each query's sorted.
class CollectedHits {
 public:
  CollectedHits() = default;
  // All offsets are zero.
  CollectedHits(int64_t queries, const Resources& resources);

  int64_t queries() const { return queries_; }
  int64_t size() const { return offsets()[queries_]; }
  int64_t* offsets() const { return offsets_.data(); }  // queries + 1
  uint64_t* neighbors() const { return neighbors_.data(); }

 private:
  friend class RangeHits;
  friend class RangeRuns;
  // Allocates the rows that the offsets count. Returns the first place of each query.
  HostArray<int64_t> make_room(const Resources& resources);

  HostArray<int64_t> offsets_;
  HostArray<uint64_t> neighbors_;
  int64_t queries_ = 0;
};

// Receives a query's sorted neighbours: use(query, neighbours, count).
using SortedUse = std::function<void(int64_t, const uint64_t*, int64_t)>;

class RangeHits {
 public:
  // Bytes a thread allocates at a time, growing from the first segment to the largest, which fills large pages.
  static constexpr int64_t kFirstSegmentBytes = 16 << 10;
  static constexpr int64_t kLargestSegmentBytes = 4 << 20;
  // Bytes per hit while a batch is collected: as added, and as sorted.
  static constexpr int64_t kBytesPerHit = 24;

  explicit RangeHits(const Resources& resources);

  // Memory for `found` rows, plus one segment of `segment_bytes` that each thread is filling.
  static Footprint footprint(int64_t found, int64_t queries, int threads,
                             int64_t segment_bytes = kLargestSegmentBytes) {
    return Footprint{kBytesPerHit}
        .times(found)
        .beside(Footprint{32 * (queries + 1)})
        .beside(Footprint{segment_bytes}.times(threads));
  }

  // Adds neighbours of one query of the batch; no two threads use the same slot at once.
  void add(int slot, int64_t query, const uint64_t* neighbors, int64_t count);
  // Adds the keys of consecutive rows, not NaN, which are all in range.
  static constexpr int64_t kMostKeys = 1024;
  void add_keys(int slot, int64_t query, uint32_t first_row, const float* keys, int64_t count);
  // Room for up to `most` more neighbours of the query; empty if they are only counted. Filled ones count once taken().
  std::span<uint64_t> room(int slot, int64_t query, int64_t most);
  // Commits `count` hits written to that room, or counted if it was empty.
  void taken(int slot, int64_t count);

  // Whether some hits were only counted.
  bool overflowed() const { return overflowed_; }
  // The number of hits since the store was emptied.
  int64_t counted() const;
  void clear();
  // Only counts from now on.
  void only_count() { overflowed_ = true; }

  // Returns the hits of `queries` queries and empties the store.
  CollectedHits collect(int64_t queries, ProgressMeter& meter);
  // The same without memory for all of them: fills queries + 1 offsets and calls use() for each query that has some, on
  // several threads at once. False where runs are short or memory is: then nothing was handed out. The store stays.
  bool hand_out(int64_t queries, int64_t* offsets, const SortedUse& use, ProgressMeter& meter) const;

 private:
  // Contiguous runs: a word with the query above the count, then the neighbours; or the same word with a mark, the
  // first row, then the keys, two in a word.
  struct alignas(64) Segments {
    int64_t counted = 0;
    std::vector<HostArray<uint64_t>> all;
    std::vector<int64_t> used;    // words used in each segment
    uint64_t* last_run = nullptr;  // the last run in the last segment, if any
  };
  bool grow(Segments* segments);
  // The word of a run that the query's next neighbours belong to, with room for one at least; null where there is none.
  uint64_t* open_run(Segments* segments, int64_t query);
  // Calls use(query, run) for every run.
  template <typename Use>
  void for_each_run(const Use& use) const;
  // The destination of each query's hits.
  using SortedPlace = std::function<uint64_t*(int64_t query, int slot)>;
  // Counts the hits of each query, as offsets.
  void count_rows(int64_t queries, int64_t* offsets) const;
  // Sorts the results of every query from its runs; false if there are too many runs or too little memory.
  bool sort_from_runs(int64_t queries, const int64_t* offsets, const SortedPlace& place, const SortedUse& use,
                      ProgressMeter& meter) const;

  Resources resources_;
  std::vector<Segments> slots_;
  std::atomic<bool> overflowed_{false};
};

// Sorts the hits of every query.
void sort_hits(CollectedHits& collected, int64_t queries, ProgressMeter& meter, const Resources& resources);

}  // namespace kith
