// Segments of lists on a device become one: every list is the lists of the segments, one after the other. A few passes
// over the offsets, one read and one write of all vectors.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// A segment's arrays on the device.
struct ListArrays {
  int64_t* offsets = nullptr;  // lists + 1
  uint8_t* codes = nullptr;
  uint32_t* rows = nullptr;
  int64_t count = 0;  // of vectors
};

// The offsets of `to` are those of no vectors: zeroed before. Call once for each segment, then launch_begin_lists, then
// launch_append_lists once for each. All enqueue and return.
void launch_add_offsets(const ListArrays& from, int64_t lists, const ListArrays& to, cudaStream_t stream);
// Where each list's next vector goes: its beginning.
void launch_begin_lists(const ListArrays& to, int64_t lists, int64_t* next, cudaStream_t stream);
// Copies the vectors of a segment behind those that are there.
void launch_append_lists(const ListArrays& from, int64_t lists, int64_t code_bytes, const ListArrays& to, int64_t* next,
                         cudaStream_t stream);

}  // namespace kith
