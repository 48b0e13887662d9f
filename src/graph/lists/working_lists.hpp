// The lists that a graph is built in: for every row the nearest others so far, as packed neighbours
// (core/ordered_key.hpp), sorted, padded at the end.
//
// A list holds the first `length` by (key, row) of all that was ever offered to it, without duplicates: so the order of
// offers does not matter, and any number of threads may offer. Bit 31 of a row is free and says whether a neighbour has
// taken part in a join (nn_descent): new ones come without it.
//
// Memory: 8 length + 5 bytes a row. Time: an offer that does not enter is one comparison.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "ranks/agreement.hpp"

#include <atomic>
#include <cstdint>
#include <limits>

namespace kith {

// In a packed neighbour.
inline constexpr uint64_t kOldFlag = 0x80000000u;

KITH_HOST_DEVICE constexpr uint64_t without_flag(uint64_t neighbor) { return neighbor & ~kOldFlag; }
KITH_HOST_DEVICE constexpr bool is_old(uint64_t neighbor) { return (neighbor & kOldFlag) != 0; }

// How many counters kernels of a GPU add each number to: many, so that they are not fought for.
inline constexpr int64_t kCounters = 64;
// The longest list that is offered neighbours in bulk there (working_lists_cuda.hpp).
inline constexpr int64_t kLongestDeviceList = 8192;

class WorkingLists {
 public:
  WorkingLists(int64_t rows, int64_t length, const Resources& resources);

  int64_t rows() const { return rows_; }
  int64_t length() const { return length_; }
  uint64_t* list(int64_t row) const { return lists_.data() + row * length_; }

  // The ordered key from which on, the key itself included unless its row comes first, nothing enters; the largest
  // where there is room.
  uint32_t threshold(int64_t row) const {
    return std::atomic_ref<uint32_t>(thresholds_[row]).load(std::memory_order_relaxed);
  }
  // The same as a key: +inf where there is room.
  float largest_key(int64_t row) const {
    const float key = key_of_ordered(threshold(row));
    return key == key ? key : std::numeric_limits<float>::infinity();
  }
  // Brings a threshold, or a list, near, ahead of its use.
  void prefetch_threshold(int64_t row) const { __builtin_prefetch(thresholds_.data() + row); }
  void prefetch_list(int64_t row) const {
    constexpr int64_t kLine = 8;  // neighbours
    for (int64_t i = 0; i < length_; i += kLine) __builtin_prefetch(list(row) + i, 1);
    __builtin_prefetch(list(row) + length_ - 1, 1);
    __builtin_prefetch(locks_.data() + row, 1);
  }

  // Offers a neighbour to a row, on any thread. Returns whether it entered.
  bool offer(int64_t row, uint64_t neighbor);
  // Offers up to length() neighbours, sorted, on any thread.
  void offer_sorted(int64_t row, const uint64_t* neighbors, int64_t count);
  // Offers to a list that nobody else touches meanwhile. They are taken as they come, flags and all.
  bool offer_alone(int64_t row, uint64_t neighbor);
  // The same of a whole list of this length, whose flags do not count.
  void offer_list(int64_t row, const uint64_t* list);
  // A list was written to from outside.
  void refresh_threshold(int64_t row);

 private:
  int64_t rows_;
  int64_t length_;
  HostArray<uint64_t> lists_;
  HostArray<uint32_t> thresholds_;
  HostArray<uint8_t> locks_;
};

// What one pass over all lists after a round tells: what changed, and the sum of all distances (GNND's equation 3).
// Sums are added in an order fixed by the row numbers. Neighbours that have come since the last survey are those
// without the flag of old ones.
struct ListSurvey {
  double phi = 0;       // of the first k of each list
  int64_t updates = 0;  // neighbours without the flag

  void add(const ListSurvey& part) {
    phi += part.phi;
    updates += part.updates;
  }
};

enum class Flags : uint8_t { keep, set, clear };

// And leaves all neighbours with the flag, without it, or as they are.
ListSurvey survey_lists(const WorkingLists& lists, int64_t k, Metric metric, Flags flags, const Resources& resources);

// The first k of the lists of some rows to their places in `out`, as the caller gets them; padding where a list is
// shorter.
void write_lists(const WorkingLists& lists, Metric metric, const RankPart& rows, const NeighborsView& out,
                 const Resources& resources);

}  // namespace kith
