// The k smallest of many lists of neighbours on the GPU, sorted: packed (key, row) entries (core/ordered_key.hpp) in
// any order, with padding among them. What comes from several scans is brought together by it.
//
// Entries are compared whole, so that equal keys go to the smaller row wherever it stands. WarpSelect
// (warp_select.hpp): one read of the entries, a warp for each list.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

inline constexpr int64_t kSelectEntriesLargestK = 2048;

struct EntrySelectTask {
  const uint64_t* entries = nullptr;  // lists x stride
  int64_t stride = 0;
  int64_t lists = 0;
  int64_t length = 0;                // of each list
  const int32_t* lengths = nullptr;  // of each, no more than that, on the device; null: all the same
  int64_t k = 0;                     // up to kSelectEntriesLargestK
  uint64_t* selected = nullptr;      // lists x k; padding where there are fewer
};

// InvalidArgument for a k that is too large. Enqueues and returns.
void launch_select_entries(const EntrySelectTask& task, cudaStream_t stream);

}  // namespace kith
