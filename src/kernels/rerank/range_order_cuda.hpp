// What a range search has found on a GPU, put together there: runs of packed neighbours, in any order, become each
// query's rows one after the other, sorted, as ids and distances.
//
// Where every query has one run, and that is sorted, it is written out as it is. Else all rows are sorted at once by
// (query, key, row) in one word: the bits that the largest of each needs (RangeWord). Rows that come in their order
// need not be sorted by it. Cost: some 100 bytes of traffic for each row found and sorted.
#pragma once

#include <kith/metric.hpp>

#include "core/host_device.hpp"
#include "core/ordered_key.hpp"
#include "kernels/rerank/rerank_task.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// A run of one query: its source, and its destination among all results.
struct PlacedRun {
  const uint64_t* neighbors = nullptr;
  int64_t to = 0;
  uint32_t count = 0;
  uint32_t query = 0;
};

// Layout of (query, key, row) in a sort word: query bits above key bits above row bits.
struct RangeWord {
  uint32_t least = 0;  // ordered key
  int key_bits = 0;
  int row_bits = 0;

  KITH_HOST_DEVICE uint64_t pack(uint64_t query, uint64_t neighbor) const {
    return (query << key_bits | (ordered_of(neighbor) - least)) << row_bits | row_of(neighbor);
  }
  KITH_HOST_DEVICE uint64_t neighbor(uint64_t word) const {
    const uint64_t key = word >> row_bits & ((uint64_t{1} << key_bits) - 1);
    const uint64_t row = word & ((uint64_t{1} << row_bits) - 1);
    return pack_neighbor(least + static_cast<uint32_t>(key), static_cast<uint32_t>(row));
  }
  // Bits left for the query number, which limit the queries sorted at a time.
  int query_bits() const { return 64 - key_bits - row_bits; }
};

struct RangeOutput {
  Metric metric = Metric::l2;
  int64_t* ids = nullptr;
  float* distances = nullptr;
};

// Lowers extremes[0] to the least ordered key and raises extremes[1] to the largest.
void launch_key_extremes(const uint64_t* neighbors, int64_t count, uint32_t* extremes, cudaStream_t stream);

// Writes out runs that are already sorted.
void launch_write_runs(const PlacedRun* runs, int64_t count, const RangeOutput& out, cudaStream_t stream);
// Makes the sort words of runs: queries from `first_query` on, places from `first` on.
void launch_pack_runs(const PlacedRun* runs, int64_t count, uint32_t first_query, int64_t first, const RangeWord& word,
                      uint64_t* words, cudaStream_t stream);
void launch_write_words(const uint64_t* words, int64_t count, const RangeWord& word, const RangeOutput& out,
                        cudaStream_t stream);

// Stable sort by bits first_bit .. end_bit - 1; returns the index of the array with the result.
int64_t sort_words_bytes(int64_t count);
int sort_words(uint64_t* const (&words)[2], int64_t count, int first_bit, int end_bit, void* memory, int64_t bytes,
               cudaStream_t stream);

// The rows in range of a tile of keys on the GPU, as the direct engine computes them, packed. Either put one after the
// other (RangeTarget), each query's in no order; or counted, and then written where the caller has made room for them,
// each query's in the order of the rows. A block for each query reads its keys twice, to count and to write.

// Selects all keys up to `limit`.
struct RangeTileTask {
  const uint32_t* keys = nullptr;  // ordered, queries x rows
  int64_t stride = 0;
  int64_t queries = 0;
  int64_t rows = 0;
  uint32_t first_row = 0;
  const uint32_t* numbers = nullptr;  // of the rows, where they are not first_row, first_row + 1, ...
  uint32_t limit = 0;
  RangeTarget target;  // queries delivered earlier are left unchanged
};
// Enqueue and return.
void launch_range_tile(const RangeTileTask& task, cudaStream_t stream);

// How many each query has, for parts of its rows: kRangeTileParts x queries; and the extremes of their keys
// (range_order_cuda.hpp).
void launch_count_tile(const RangeTileTask& task, uint32_t* counts, uint32_t* extremes, cudaStream_t stream);
// starts[q] is where query q's begin; as neighbours, or as words of queries 0, 1, ...
void launch_write_tile(const RangeTileTask& task, const uint32_t* counts, const int64_t* starts, uint64_t* neighbors,
                       cudaStream_t stream);
void launch_write_tile_words(const RangeTileTask& task, const uint32_t* counts, const int64_t* starts,
                             const RangeWord& word, uint64_t* words, cudaStream_t stream);

}  // namespace kith
