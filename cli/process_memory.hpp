// What this process takes of the machine's memory, and what it leaves to the library under --memory-limit.
//
// The limit is a promise about the peak resident memory of the whole process. The library counts its buffers; the rest
// (code, heap, stacks, page tables' rounding) is what is resident already plus a reserve for what is yet to come.
#pragma once

#include <cstdint>

namespace kith::cli {

// Resident bytes now, and the most there have been.
int64_t resident_bytes();
int64_t peak_resident_bytes();

// What the process needs beside the library's buffers, from now to its end, with `threads` threads.
int64_t own_bytes(int threads, bool uses_cuda);

// Makes freed memory go back to the system at once and keeps stacks small. Before the first thread starts.
void keep_memory_small();

}  // namespace kith::cli
