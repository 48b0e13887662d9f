// From the list and the code of each row to a segment on the device: a stable sort by list, so that rows ascend within
// each, and one pass that puts codes in that order.
//
// Cost: a radix sort of 8 bytes a row, one read and one write of the codes. Memory: 12 bytes a row beside labels, codes
// and the segment, and what the sort takes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

struct SortListsTask {
  int32_t* labels = nullptr;       // of each row; changed. What is no list's number counts as the first
  const uint8_t* codes = nullptr;  // one after the other
  int64_t count = 0;
  int64_t lists = 1;
  int64_t code_bytes = 0;
  uint32_t first_row = 0;  // the first row's number
  // The segment.
  int64_t* offsets = nullptr;
  uint8_t* sorted_codes = nullptr;
  uint32_t* rows = nullptr;
};

int64_t sort_lists_bytes(int64_t count, int64_t lists);

// With so many bytes of memory, aligned to 256 bytes. Enqueues and returns.
void launch_sort_lists(const SortListsTask& task, std::byte* memory, cudaStream_t stream);

}  // namespace kith
