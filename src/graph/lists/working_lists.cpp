#include "graph/lists/working_lists.hpp"

#include "core/divide.hpp"
#include "core/result_exit.hpp"
#include "rows/row_blocks.hpp"

#include <algorithm>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kSurveyedRowsPerTask = 2048;

// Four sums, which do not wait for each other.
double sum_of_distances(const ResultExit& exit, const uint64_t* list, int64_t count) {
  double sums[4] = {};
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    for (int64_t i = 0; i < 4; ++i) sums[i] += exit.distance(list[j + i]);
  }
  for (; j < count; ++j) sums[0] += exit.distance(list[j]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

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
  for_row_blocks("lists", rows, resources.with_progress({}), [&](int64_t first, int64_t end) {
    std::fill(list(first), list(end), kPadding);
    std::fill(thresholds_.data() + first, thresholds_.data() + end, kNanKey);
    std::fill(locks_.data() + first, locks_.data() + end, uint8_t{0});
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
  uint64_t* const at = std::lower_bound(first, end, bare, [](uint64_t a, uint64_t b) { return without_flag(a) < b; });
  if (without_flag(*at) == bare) return false;
  std::copy_backward(at, end - 1, end);
  *at = neighbor;
  refresh_threshold(row);
  return true;
}

void WorkingLists::offer_list(int64_t row, const uint64_t* list) {
  for (int64_t j = 0; j < length_ && list[j] != kPadding; ++j) {
    const uint64_t bare = without_flag(list[j]);
    if (bare > without_flag(this->list(row)[length_ - 1])) return;  // nor do those behind it
    offer_alone(row, bare);
  }
}

void WorkingLists::refresh_threshold(int64_t row) {
  std::atomic_ref<uint32_t>(thresholds_[row]).store(ordered_of(list(row)[length_ - 1]), std::memory_order_relaxed);
}

ListSurvey survey_lists(const WorkingLists& lists, int64_t k, Metric metric, Flags flags, const Resources& resources) {
  std::vector<ListSurvey> parts(static_cast<size_t>(divide_up(lists.rows(), kSurveyedRowsPerTask)));
  const ResultExit exit(metric);
  const auto survey = [&](int64_t first, int64_t end) {
    ListSurvey part;
    for (int64_t row = first; row < end; ++row) {
      uint64_t* const list = lists.list(row);
      int64_t count = lists.length();
      while (count > 0 && list[count - 1] == kPadding) --count;
      part.phi += sum_of_distances(exit, list, std::min(k, count));
      for (int64_t j = 0; j < count; ++j) part.updates += is_old(list[j]) ? 0 : 1;
      if (flags == Flags::set) {
        for (int64_t j = 0; j < count; ++j) list[j] |= kOldFlag;
      } else if (flags == Flags::clear) {
        for (int64_t j = 0; j < count; ++j) list[j] = without_flag(list[j]);
      }
    }
    parts[static_cast<size_t>(first / kSurveyedRowsPerTask)] = part;
  };
  for_row_blocks("survey", lists.rows(), resources.with_progress({}), survey, kSurveyedRowsPerTask);
  ListSurvey all;
  for (const ListSurvey& part : parts) all.add(part);
  return all;
}

void write_lists(const WorkingLists& lists, Metric metric, const RankPart& rows, const NeighborsView& out,
                 const Resources& resources) {
  const ResultExit exit(metric);
  const Resources quiet = resources.with_progress({});
  for_row_blocks("write", rows.count, quiet, [&](int64_t first, int64_t end) {
    for (int64_t row = rows.first + first; row < rows.first + end; ++row) {
      for (int64_t j = 0; j < out.k; ++j) {
        const uint64_t stored = j < lists.length() ? lists.list(row)[j] : kPadding;
        const uint64_t neighbor = stored == kPadding ? kPadding : without_flag(stored);
        out.ids[row * out.k + j] = exit.id(neighbor);
        out.distances[row * out.k + j] = exit.distance(neighbor);
      }
    }
  });
}

}  // namespace kith
