// The memory that this process itself needs, and thus how much of --memory-limit is left for the library.
//
// The limit is a promise about the peak resident memory of the whole process. The library counts its buffers;
// everything else (code, heap, stacks, rounding to pages) is estimated as what is resident now plus a reserve.
#pragma once

#include <cstdint>

namespace kith::cli {

// Resident bytes now, and their peak.
int64_t resident_bytes();
int64_t peak_resident_bytes();

// Bytes that the process will need beside the library's buffers, with `threads` threads.
int64_t own_bytes(int threads, bool uses_cuda);

// Returns freed memory to the system at once and keeps stacks small. Call it before the first thread starts.
void keep_memory_small();

}  // namespace kith::cli
