// Whether a list holds a row, in one read of 32 bytes: beside each list its rows lie in buckets of eight by a hash.
//
// A bucket that got more says so in its last place; then the list itself must be asked. What is found is there.
// Memory: 8 to 16 bytes for each place of a list.
#pragma once

#include "cuda/vector_access.hpp"
#include "graph/nn_descent/descent_workspace.hpp"
#include "graph/nn_descent/join_rules.hpp"
#include "graph/working_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

inline constexpr uint32_t kMoreRows = kNobody - 1;  // in the last place of a bucket

struct KnownRows {
  uint32_t* buckets = nullptr;  // rows x (1 << bits) x kBucketRows
  int bits = 0;                 // known_bits() of the lists' length

  KITH_HOST_DEVICE int64_t bucket(int64_t list, uint32_t row) const {
    const uint32_t hash = row * 0x9E3779B1u;
    return (list << bits | (bits == 0 ? 0 : hash >> (32 - bits))) * kBucketRows;
  }
};

enum class Known : uint8_t { yes, no, unsure };

#if defined(__CUDACC__)
__device__ inline Known is_known(const KnownRows& known, uint32_t list, uint32_t row) {
  const uint4* const bucket = vectors<uint4>(known.buckets + known.bucket(list, row));
  const uint4 a = __ldg(bucket);
  const uint4 b = __ldg(bucket + 1);
  const bool found = a.x == row || a.y == row || a.z == row || a.w == row || b.x == row || b.y == row || b.z == row ||
                     b.w == row;
  return found ? Known::yes : b.w == kMoreRows ? Known::unsure : Known::no;
}
#endif

// From all lists. Enqueues.
void launch_know_rows(const DeviceListsRef& lists, const KnownRows& known, cudaStream_t stream);

}  // namespace kith
