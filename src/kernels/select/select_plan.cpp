#include "kernels/select/select_plan.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "kernels/select/filter_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace kith {
namespace {

constexpr int kSmallThreads = 128;
constexpr int kMediumThreads = 256;
constexpr int kLargeThreads = 512;
constexpr int64_t kSmallThreadsLargestK = 128;
constexpr int64_t kMediumThreadsLargestK = 1024;
constexpr int64_t kBytesPerEntry = sizeof(uint64_t);

SelectPath choose_path(const SelectProblem& problem) {
  if (problem.wide_payload) return SelectPath::warp_queue;
  if (problem.cols <= kRegistersLongestRow)
    return problem.k <= kRegistersLongestRow ? SelectPath::registers : SelectPath::radix;
  return problem.k <= kFilterLargestK ? SelectPath::filter : SelectPath::radix;
}

int64_t largest_k(SelectPath path, bool wide_payload) {
  switch (path) {
    case SelectPath::registers: return kRegistersLongestRow;
    case SelectPath::filter: return kFilterLargestK;
    case SelectPath::warp_queue: return wide_payload ? kWarpQueueLargestWideK : kWarpQueueLargestK;
    default: return std::numeric_limits<int32_t>::max();
  }
}

void check(const SelectProblem& problem, SelectPath path) {
  if (problem.rows < 0 || problem.cols < 0 || problem.cols > std::numeric_limits<int32_t>::max()) {
    throw InvalidArgument(fmt::format("a selection over {} rows of {} values; rows have up to 2^31 - 1 values",
                                      problem.rows, problem.cols));
  }
  const int64_t limit = largest_k(path, problem.wide_payload);
  if (problem.k < 1 || problem.k > limit) {
    throw InvalidArgument(fmt::format("k is {}; this way of selecting takes 1 to {}", problem.k, limit));
  }
  if (problem.wide_payload && path != SelectPath::warp_queue) {
    throw InvalidArgument("64-bit ids are selected by the warp queue alone; leave the path automatic");
  }
  if (path == SelectPath::registers && problem.cols > kRegistersLongestRow) {
    throw InvalidArgument(fmt::format("rows of {} values do not fit a warp's registers; the longest have {}",
                                      problem.cols, kRegistersLongestRow));
  }
}

// Small blocks wait less for each other; large ones have room for a larger k and for the sample of a longer row.
int threads_for(const SelectProblem& problem) {
  if (problem.k <= kSmallThreadsLargestK && problem.cols <= filter_longest_slice(problem.k, kSmallThreads) / 2) {
    return kSmallThreads;
  }
  if (problem.k <= kMediumThreadsLargestK && problem.cols <= filter_longest_slice(problem.k, kMediumThreads)) {
    return kMediumThreads;
  }
  return kLargeThreads;
}

// Rows are cut where a slice would be too long for its sample, and where they are too few to fill the GPU; then
// preferably so that one merge takes all slices of a row.
void plan_slices(const SelectProblem& problem, int multiprocessors, SelectPlan& plan) {
  plan.threads = threads_for(problem);
  const int64_t rows = std::max<int64_t>(problem.rows, 1);
  int64_t wanted = 1;
  if (rows < multiprocessors) {
    plan.threads = kLargeThreads;
    const int64_t shortest = int64_t{4} * plan.threads * kFilterItems;
    wanted = std::min({divide_up(multiprocessors, rows), problem.cols / shortest, kMergeCapacity / problem.k});
  }
  const int64_t needed = divide_up(problem.cols, filter_longest_slice(problem.k, plan.threads));
  plan.slices = std::max({needed, wanted, int64_t{1}});
  // Slices start at a sector boundary if the row does.
  plan.slice_length = divide_up(divide_up(problem.cols, plan.slices), kSampleRun) * kSampleRun;
  plan.slices = std::max<int64_t>(1, divide_up(problem.cols, plan.slice_length));
  if (plan.slices > 1) {
    const int64_t fan = kMergeCapacity / problem.k;
    const int64_t merged = divide_up(plan.slices, fan);
    plan.workspace_bytes = problem.rows * (plan.slices + (merged > 1 ? merged : 0)) * problem.k * kBytesPerEntry;
  }
}

int64_t find_longest_slice(int64_t k, int threads) {
  const int sample = threads * kFilterItems;
  int64_t longest = sample;
  for (int64_t n = sample; n <= int64_t{sample} * 128; n += sample) {
    const KeepRange range = sample_range(static_cast<uint32_t>(k), static_cast<uint32_t>(n), sample);
    const double per_value = static_cast<double>(n) / sample;
    if ((range.most + 4.5 * std::sqrt(range.most)) * per_value > sample) break;
    longest = n;
  }
  return longest;
}

}  // namespace

// Searches of one query need the same few plans, and making one takes a microsecond: each thread caches the last ones.
int64_t filter_longest_slice(int64_t k, int threads) {
  struct Known {
    int64_t k = -1;
    int threads = 0;
    int64_t longest = 0;
  };
  constexpr size_t kPlaces = 16;
  thread_local std::array<Known, kPlaces> known;
  Known& last = known[static_cast<size_t>(4 * k + threads / kSmallThreads) % kPlaces];
  if (last.k != k || last.threads != threads) last = {k, threads, find_longest_slice(k, threads)};
  return last.longest;
}

SelectPlan plan_select(const SelectProblem& problem, int multiprocessors, SelectPath path) {
  SelectPlan plan;
  plan.path = path == SelectPath::automatic ? choose_path(problem) : path;
  check(problem, plan.path);
  plan.slice_length = problem.cols;
  if (plan.path == SelectPath::filter) plan_slices(problem, multiprocessors, plan);
  if (plan.path == SelectPath::radix) plan.workspace_bytes = problem.rows * problem.k * kBytesPerEntry;
  return plan;
}

}  // namespace kith
