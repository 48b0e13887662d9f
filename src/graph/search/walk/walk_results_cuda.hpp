// Writes the results of a walk whose keys are the vectors' squared distances: the same bytes as re-ranking its places
// (index/graph_compare_cuda.hpp), without another launch.
//
// Places are sorted by distance, so the rank of a place's i-th row is i plus the number of rows at earlier places. Only
// places of equal distance (equal squares, or squares whose roots round to the same float) have to merge their
// rows. Most places have one row.
#pragma once

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/warp.hpp"
#include "graph/search/walk/walk_task_cuda.hpp"
#include "kernels/distance/canonical.hpp"

#include <cstdint>

namespace kith {

// The ordered key of the reported distance, from the integer squared distance that walks sort by.
KITH_DEVICE_INLINE uint32_t ordered_key_of_square(KeyKind kind, uint32_t ordered) {
  const auto square = static_cast<double>(static_cast<int32_t>(ordered ^ 0x80000000U));
  return ordered_key(kind == KeyKind::l2 ? canonical_key<KeyKind::l2>(square, 0, 0)
                                         : canonical_key<KeyKind::squared_l2>(square, 0, 0));
}

class WalkResultsWriter {
 public:
  // Arrays of kMostWalkResults entries each.
  __device__ WalkResultsWriter(const WalkTaskCuda& task, uint64_t* rows, uint32_t* keys, int* ends)
      : task_(task), to_(task.results), rows_(rows), keys_(keys), ends_(ends) {}

  // `entries`: the sorted beam. By one warp.
  KITH_DEVICE_INLINE void write(int64_t query, const uint64_t* entries, int size) const {
    const int places = look_up(entries, size);
    const int total = places == 0 ? 0 : ends_[places - 1];
    const auto k = static_cast<int>(to_.k);
    for (int start = 0; start < places; start += 32) {
      const int place = start + lane_index();
      if (place < places) write_row(query, place, places, 0);
      const bool more = place < places && count_at(place) > 1;
      for (unsigned left = __ballot_sync(kAllLanes, more); left != 0; left &= left - 1) {
        const int one = start + __ffs(static_cast<int>(left)) - 1;
        const int rows = min(count_at(one), k);  // the first k hold no more of them
        for (int i = 1 + lane_index(); i < rows; i += 32) write_row(query, one, places, i);
      }
    }
    for (int i = total + lane_index(); i < k; i += 32) write_at(query, i, kPadding);
    if (lane_index() == 0) to_.failed[query] = total < to_.fewest_rows ? to_.after_few : 0;
  }

 private:
  // Looks up the rows of the first places, until there are enough. Returns the number of places.
  KITH_DEVICE_INLINE int look_up(const uint64_t* entries, int size) const {
    const auto most = static_cast<int>(min(static_cast<int64_t>(size), task_.most));
    int places = 0;
    int total = 0;
    for (int start = 0; start < most && total < to_.candidates; start += 32) {
      if (total >= to_.k && key_of(entries[start]) != keys_[start - 1]) break;  // all further places are farther
      const int place = start + lane_index();
      uint32_t first = 0;  // index into PlaceRows::rows
      uint32_t row = 0;
      int count = 0;
      if (place < most) {
        const PlaceRows& all = task_.rows;
        const uint32_t number = row_of(entries[place]) >> 1;
        count = 1;
        if (number >= all.places) {
          row = static_cast<uint32_t>(all.graph_rows + number - all.places);
        } else {
          first = number;
          if (all.graph_rows != all.places) {
            first = all.offsets[number];
            count = static_cast<int>(all.offsets[number + 1] - first);
          }
          row = all.rows[first];
        }
      }
      const int end = total + warp_inclusive(count);
      const bool wanted = place < most && end - count < to_.candidates;
      if (wanted) {
        rows_[place] = static_cast<uint64_t>(first) << 32 | row;
        keys_[place] = key_of(entries[place]);
        ends_[place] = end;
      }
      places += __popc(__ballot_sync(kAllLanes, wanted));
      total = __reduce_max_sync(kAllLanes, wanted ? end : total);
      __syncwarp();
    }
    return places;
  }

  __device__ uint32_t key_of(uint64_t entry) const { return ordered_key_of_square(to_.kind, ordered_of(entry)); }
  __device__ int begin_of(int place) const { return place == 0 ? 0 : ends_[place - 1]; }
  __device__ int count_at(int place) const { return ends_[place] - begin_of(place); }
  // The i-th row of a place, in ascending order.
  __device__ uint32_t row_at(int place, int i) const {
    return i == 0 ? row_of(rows_[place]) : task_.rows.rows[static_cast<uint32_t>(rows_[place] >> 32) + i];
  }
  // How many rows of a place are below `row`.
  __device__ int rows_below(int place, uint32_t row) const {
    int below = 0;
    for (int high = count_at(place); below < high;) {
      const int middle = (below + high) / 2;
      if (row_at(place, middle) < row) {
        below = middle + 1;
      } else {
        high = middle;
      }
    }
    return below;
  }

  __device__ void write_row(int64_t query, int place, int places, int i) const {
    const uint32_t key = keys_[place];
    const uint32_t row = row_at(place, i);
    int rank = begin_of(place) + i;
#pragma unroll 1
    for (int other = place - 1; other >= 0 && keys_[other] == key; --other) {
      rank -= count_at(other) - rows_below(other, row);
    }
#pragma unroll 1
    for (int other = place + 1; other < places && keys_[other] == key; ++other) rank += rows_below(other, row);
    if (rank < to_.k) write_at(query, rank, pack_neighbor(key, row));
  }
  __device__ void write_at(int64_t query, int at, uint64_t neighbor) const {
    to_.ids[query * to_.k + at] = to_.exit.id(neighbor);
    to_.distances[query * to_.k + at] = to_.exit.distance(neighbor);
  }

  const WalkTaskCuda& task_;
  const WalkResults& to_;
  uint64_t* const rows_;  // of each place the first one, below where it lies
  uint32_t* const keys_;
  int* const ends_;  // per place: the end of its rows, numbered consecutively
};

}  // namespace kith
