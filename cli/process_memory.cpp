#include "process_memory.hpp"

#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <string>

namespace kith::cli {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Measured: code and data of libraries that are touched later, the heap, buffers of files.
constexpr int64_t kReserve = 4 * kMiB;
// A thread's stack, including the kernels' arrays on it, and its malloc arena.
constexpr int64_t kReservePerThread = kMiB / 2;
// Kernels that the CUDA runtime loads when they are first launched, and its staging buffers.
constexpr int64_t kReserveCuda = 256 * kMiB;

}  // namespace

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t peak_resident_bytes() {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    if (word == "VmHWM:") {
      int64_t kibibytes = 0;
      file >> kibibytes;
      return kibibytes * 1024;
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

int64_t own_bytes(int threads, bool uses_cuda) {
  return resident_bytes() + kReserve + threads * kReservePerThread + (uses_cuda ? kReserveCuda : 0);
}

void keep_memory_small() {
#if defined(__GLIBC__)
  // A fixed threshold: glibc otherwise raises it with every large block freed and keeps later ones on the heap.
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  mallopt(M_TRIM_THRESHOLD, 256 * 1024);
  // Where huge pages are always on, an 8 MiB stack takes 2 MiB at its first touch; one of 1 MiB cannot.
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  if (pthread_attr_setstacksize(&attributes, static_cast<size_t>(kMiB)) == 0) pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
#endif
}

}  // namespace kith::cli
