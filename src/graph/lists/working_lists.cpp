#include "graph/lists/working_lists.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kRowsPerTask = 4096;

// Held for tens of nanoseconds: waiting costs less than sleeping.
class RowLock {
 public:
  explicit RowLock(uint8_t& flag) : flag_(flag) {
    while (flag_.exchange(1, std::memory_order_acquire) != 0) {
    }
  }
  ~RowLock() { flag_.store(0, std::memory_order_release); }
  RowLock(const RowLock&) = delete;
  RowLock& operator=(const RowLock&) = delete;

 private:
  std::atomic_ref<uint8_t> flag_;
};

}  // namespace

WorkingLists::WorkingLists(int64_t rows, int64_t length, const Resources& resources)
    : rows_(rows),
      length_(length),
      lists_(rows * length, "the lists of neighbours", resources),
      thresholds_(rows, "the lists of neighbours", resources),
      locks_(rows, "the lists of neighbours", resources) {
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("lists", rows, quiet);
  parallel_for(divide_up(rows, kRowsPerTask), meter, quiet, [&](int64_t task, int) {
    const int64_t first = task * kRowsPerTask;
    const int64_t count = std::min(kRowsPerTask, rows - first);
    std::fill_n(list(first), count * length, kPadding);
    std::fill_n(thresholds_.data() + first, count, kNanKey);
    std::fill_n(locks_.data() + first, count, uint8_t{0});
  });
}

bool WorkingLists::offer(int64_t row, uint64_t neighbor) {
  if (ordered_of(neighbor) > threshold(row)) return false;
  const RowLock lock(locks_[row]);
  return offer_alone(row, neighbor);
}

void WorkingLists::offer_sorted(int64_t row, const uint64_t* neighbors, int64_t count) {
  const RowLock lock(locks_[row]);
  if (list(row)[0] == kPadding) {
    std::copy_n(neighbors, count, list(row));
    return refresh_threshold(row);
  }
  for (int64_t i = 0; i < count && without_flag(neighbors[i]) < without_flag(list(row)[length_ - 1]); ++i) {
    offer_alone(row, neighbors[i]);
  }
}

bool WorkingLists::offer_alone(int64_t row, uint64_t neighbor) {
  uint64_t* const first = list(row);
  uint64_t* const end = first + length_;
  const uint64_t bare = without_flag(neighbor);
  if (bare >= without_flag(end[-1])) return false;
  uint64_t* const at =
      std::lower_bound(first, end, bare, [](uint64_t a, uint64_t b) { return without_flag(a) < b; });
  if (without_flag(*at) == bare) return false;
  std::copy_backward(at, end - 1, end);
  *at = neighbor;
  refresh_threshold(row);
  return true;
}

void WorkingLists::refresh_threshold(int64_t row) {
  std::atomic_ref<uint32_t>(thresholds_[row])
      .store(ordered_of(list(row)[length_ - 1]), std::memory_order_relaxed);
}

}  // namespace kith
