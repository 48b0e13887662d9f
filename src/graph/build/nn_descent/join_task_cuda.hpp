// What a join of NN-Descent on a GPU is given (join_cuda.hpp), on plain arrays in its memory.
#pragma once

#include "core/host_device.hpp"
#include "cuda/vector_access.hpp"
#include "graph/build/nn_descent/descent_workspace.hpp"
#include "graph/build/nn_descent/join_rules.hpp"
#include "graph/build/nn_descent/join_window.hpp"
#include "graph/lists/pairs/pair_key_rows.hpp"
#include "graph/lists/working_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// Of every row 4 p numbers: the p NEW ones that it has sampled and some p of those that have sampled it as a NEW one,
// then the OLD ones likewise, kNobody where there are fewer. Once collected (collect_joins_cuda.hpp) those that meet in
// the row's join, NEW ones first, nobody twice, and how many of each kind.
struct DeviceSamples {
  uint32_t* numbers = nullptr;
  uint32_t* counts = nullptr;  // packed JoinCounts
  int64_t samples = 0;         // p

  // Where those of a kind begin, NEW (0) or OLD (1).
  KITH_HOST_DEVICE uint32_t* forward(int64_t row, int64_t kind) const { return numbers + (4 * row + 2 * kind) * samples; }
  KITH_HOST_DEVICE uint32_t* reverse(int64_t row, int64_t kind) const { return forward(row, kind) + samples; }
  KITH_HOST_DEVICE uint32_t* collected(int64_t row) const { return numbers + 4 * row * samples; }
  int64_t of_row() const { return 4 * samples; }  // numbers
  int64_t row_bytes() const { return of_row() * static_cast<int64_t>(sizeof(uint32_t)); }
};

// Operands as launch_query_operands() makes them, with what is known of each.
struct JoinOperands {
  const std::byte* halves = nullptr;  // null: there is no product
  const JoinFacts* facts = nullptr;
  int64_t chunks = 0;
};

// Whether a list holds a row, in one read of 32 bytes: beside each list its rows lie in buckets of eight by a hash. A
// bucket that got more says so in its last place; then the list itself must be asked. What is found is there. Memory: 8
// to 16 bytes for each place of a list.
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
  const bool found =
      a.x == row || a.y == row || a.z == row || a.w == row || b.x == row || b.y == row || b.z == row || b.w == row;
  return found ? Known::yes : b.w == kMoreRows ? Known::unsure : Known::no;
}
#endif

// From all lists. Enqueues.
void launch_know_rows(const DeviceListsRef& lists, const KnownRows& known, cudaStream_t stream);

struct JoinTask {
  PairKeyRows rows;
  JoinOperands operands;
  DeviceListsRef lists;
  KnownRows known;
  DeviceSamples samples;
  uint64_t* inbox = nullptr;  // rows x slots
  int64_t slots = 0;
  uint64_t salt = 0;
  int64_t boundary = 0;
  bool all_pairs = false;
  const uint32_t* joins = nullptr;  // rows whose samples meet
  int64_t first = 0;                // of this launch, in that order
  int64_t count = 0;
};

}  // namespace kith
