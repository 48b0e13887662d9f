// How a selection over rows will run: which kernels, how rows are cut, how much memory.
//
//   registers    a warp holds a row of up to 1,024 values in registers and finds the cut by bisection
//   filter       a block estimates a threshold from a sample of the row, keeps on chip what passes it in one read, and
//                selects among that; rows that are few and long are cut into slices, whose selections are merged
//   warp_queue   WarpSelect (section 4.2 of the 2019 paper); the one that takes 64-bit payloads
//   radix        any k: four reads for the k-th key, one to collect, and a sort in global memory
#pragma once

#include <cstdint>

namespace kith {

enum class SelectOrder { smallest, largest };
enum class SelectPath { automatic, registers, filter, warp_queue, radix };

struct SelectProblem {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t k = 0;
  SelectOrder order = SelectOrder::smallest;
  bool wide_payload = false;
};

struct SelectPlan {
  SelectPath path = SelectPath::automatic;
  int threads = 0;           // per block, on the filter path
  int64_t slices = 1;        // per row
  int64_t slice_length = 0;  // values
  int64_t workspace_bytes = 0;
};

inline constexpr int64_t kRegistersLongestRow = 1024;
inline constexpr int64_t kKthLongestRow = 32768;  // of which launch_kth_value finds a cut, which is no selection
inline constexpr int64_t kFilterLargestK = 2048;
inline constexpr int64_t kWarpQueueLargestK = 2048;
inline constexpr int64_t kWarpQueueLargestWideK = 1024;
inline constexpr int kFilterItems = 16;  // values held per thread
inline constexpr int kMergeThreads = 1024;
inline constexpr int64_t kMergeCapacity = kMergeThreads * kFilterItems;

// The longest slice of which a sample of threads * kFilterItems values gives a threshold that, but for very rare data,
// more than k and no more than threads * kFilterItems values pass.
int64_t filter_longest_slice(int64_t k, int threads);

// Throws InvalidArgument if no path, or not the given one, supports the problem.
SelectPlan plan_select(const SelectProblem& problem, int multiprocessors, SelectPath path = SelectPath::automatic);

}  // namespace kith
