// Scans of inverted lists by lookup tables, as section 5.3 of "Billion-scale similarity search with GPUs" has them:
// what the list-major search of the library is measured against. Squared L2 of residual product codes of 8 bits, 128
// columns.
//
// A distance is |x - c|^2 + (|r|^2 + 2 <c, r>) - 2 <x, r>, r being the decoded residual. Tables of the last part are
// made once for a query. The middle part (the paper's term 1) comes from a table of the list, which is added to the
// query's; from four bytes beside each vector; or not at all: a table of |x - c - w|^2 is made for every pair of query
// and list. Tables lie in shared memory as f32, f16 or bytes.
//
//   multi-pass  a block for each pair writes all distances, a second kernel selects from them
//   two-pass    so many blocks for each query keep its k best, a second kernel selects from these
//   fused       one block for each query
#pragma once

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "kernels/select/sort_in_place_cuda.hpp"

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

enum class TableTerm { of_list, of_vector, none };
enum class TableScan { multi_pass, two_pass, fused };

struct TableScanTask {
  const float* queries = nullptr;    // x 128
  const uint64_t* probes = nullptr;  // queries x slots, packed
  int64_t slots = 0;
  int64_t k = 0;
  const int64_t* offsets = nullptr;
  const uint8_t* codes = nullptr;
  const float* centres = nullptr;
  const float* codewords = nullptr;     // parts x 256 x columns of a part
  const float* query_tables = nullptr;  // queries x parts x 256: -2 <x, w>
  const float* list_tables = nullptr;   // lists x parts x 256: |w|^2 + 2 <c, w>
  const float* vector_terms = nullptr;  // their sums, of each vector
  float* distances = nullptr;           // multi-pass: queries x distance_stride
  int64_t distance_stride = 0;
  const int32_t* starts = nullptr;  // queries x slots: where a list's distances begin
  int64_t splits = 1;               // two-pass: blocks of a query
  uint64_t* kept = nullptr;         // queries x splits x k
};

inline constexpr int kTableCols = 128;
inline constexpr int kTableThreads = 256;
inline constexpr int kTableRun = 4 * kTableThreads;  // vectors between two looks at the list of what is kept

template <int kParts>
__global__ void query_tables_kernel(const float* queries, const float* codewords, float* tables) {
  constexpr int kCols = kTableCols / kParts;
  __shared__ float x[kTableCols];
  const int64_t query = blockIdx.x;
  const auto word = static_cast<int>(threadIdx.x);
  if (word < kTableCols) x[word] = queries[query * kTableCols + word];
  __syncthreads();
  for (int part = 0; part < kParts; ++part) {
    const float* const w = codewords + (part * 256 + word) * kCols;
    float sum = 0;
    for (int c = 0; c < kCols; ++c) sum += x[part * kCols + c] * w[c];
    tables[(query * kParts + part) * 256 + word] = -2 * sum;
  }
}

template <int kParts>
__global__ void list_tables_kernel(const float* centres, const float* codewords, float* tables) {
  constexpr int kCols = kTableCols / kParts;
  const int64_t list = blockIdx.x;
  const auto word = static_cast<int>(threadIdx.x);
  for (int part = 0; part < kParts; ++part) {
    const float* const w = codewords + (part * 256 + word) * kCols;
    float sum = 0;
    for (int c = 0; c < kCols; ++c) sum += w[c] * (w[c] + 2 * centres[list * kTableCols + part * kCols + c]);
    tables[(list * kParts + part) * 256 + word] = sum;
  }
}

// A block for each list.
template <int kParts>
__global__ void vector_terms_kernel(const int64_t* offsets, const uint8_t* codes, const float* list_tables,
                                    float* terms) {
  const int64_t list = blockIdx.x;
  for (int64_t i = offsets[list] + threadIdx.x; i < offsets[list + 1]; i += blockDim.x) {
    float sum = 0;
    for (int part = 0; part < kParts; ++part) {
      sum += list_tables[(list * kParts + part) * 256 + codes[i * kParts + part]];
    }
    terms[i] = sum;
  }
}

// Where the distances of each pair begin, and how many a query has. A thread for each query.
inline __global__ void table_starts_kernel(const uint64_t* probes, int64_t queries, int64_t slots,
                                           const int64_t* offsets, int32_t* starts, int32_t* lengths) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (query >= queries) return;
  int32_t at = 0;
  for (int64_t slot = 0; slot < slots; ++slot) {
    const uint32_t list = kith::row_of(probes[query * slots + slot]);
    starts[query * slots + slot] = at;
    at += static_cast<int32_t>(offsets[list + 1] - offsets[list]);
  }
  lengths[query] = at;
}

// A table of one pair, or query, in shared memory; made from f32 values that lie there already, by all threads.
template <typename Value, int kParts>
struct SharedTable {
  float* staged;  // kParts x 256, f32
  Value* values;  // where Value is float the same
  uint32_t* least;
  uint32_t* most;
  float base = 0;
  float step = 1;

  __device__ void make() {
    const auto word = static_cast<int>(threadIdx.x);
    if constexpr (std::is_same_v<Value, __half>) {
      __syncthreads();
      for (int part = 0; part < kParts; ++part) values[part * 256 + word] = __float2half(staged[part * 256 + word]);
    } else if constexpr (std::is_same_v<Value, uint8_t>) {
      for (int part = word; part < kParts; part += kTableThreads) {
        least[part] = 0xFFFFFFFFu;
        most[part] = 0;
      }
      __syncthreads();
      for (int part = 0; part < kParts; ++part) {
        const uint32_t key = kith::ordered_key(staged[part * 256 + word]);
        const uint32_t low = __reduce_min_sync(0xFFFFFFFFu, key);
        const uint32_t high = __reduce_max_sync(0xFFFFFFFFu, key);
        if (word % 32 == 0) {
          atomicMin(&least[part], low);
          atomicMax(&most[part], high);
        }
      }
      __syncthreads();
      base = 0;
      step = 1e-30f;
      for (int part = 0; part < kParts; ++part) {
        const float low = kith::key_of_ordered(least[part]);
        base += low;
        step = fmaxf(step, (kith::key_of_ordered(most[part]) - low) / 255);
      }
      for (int part = 0; part < kParts; ++part) {
        const float low = kith::key_of_ordered(least[part]);
        values[part * 256 + word] = static_cast<uint8_t>((staged[part * 256 + word] - low) / step + 0.5f);
      }
    }
    __syncthreads();
  }

  __device__ float sum(const uint8_t* code) const {
    constexpr int kWords = kParts / 4;
    uint32_t words[kWords];
    if constexpr (kWords == 2) {
      const uint2 loaded = __ldg(reinterpret_cast<const uint2*>(code));
      words[0] = loaded.x;
      words[1] = loaded.y;
    } else {
      for (int i = 0; i < kWords / 4; ++i) {
        const uint4 loaded = __ldg(reinterpret_cast<const uint4*>(code) + i);
        words[4 * i] = loaded.x;
        words[4 * i + 1] = loaded.y;
        words[4 * i + 2] = loaded.z;
        words[4 * i + 3] = loaded.w;
      }
    }
    if constexpr (std::is_same_v<Value, uint8_t>) {
      uint32_t total = 0;
      KITH_UNROLL
      for (int part = 0; part < kParts; ++part) {
        total += values[part * 256 + (words[part / 4] >> (8 * (part % 4)) & 255u)];
      }
      return base + step * static_cast<float>(total);
    } else {
      float total = 0;
      KITH_UNROLL
      for (int part = 0; part < kParts; ++part) {
        total += static_cast<float>(values[part * 256 + (words[part / 4] >> (8 * (part % 4)) & 255u)]);
      }
      return total;
    }
  }
};

template <typename Value, int kParts>
constexpr int64_t table_shared_bytes(int64_t k, bool selects) {
  const int64_t table = std::is_same_v<Value, float> ? 0 : kParts * 256 * static_cast<int64_t>(sizeof(Value));
  return kParts * 256 * 4 + table + (selects ? (k + 2 * kTableRun) * 8 : 0);
}

template <typename Value, int kParts, TableTerm kTerm, TableScan kScan>
__global__ void __launch_bounds__(kTableThreads) table_scan_kernel(const __grid_constant__ TableScanTask task) {
  constexpr int kCols = kTableCols / kParts;
  extern __shared__ __align__(16) std::byte table_memory[];
  __shared__ float x[kTableCols];
  __shared__ float centre_distance;
  __shared__ uint32_t least[kParts];
  __shared__ uint32_t most[kParts];
  __shared__ int listed;
  auto* const staged = reinterpret_cast<float*>(table_memory);
  auto* const after = table_memory + kParts * 256 * 4;
  SharedTable<Value, kParts> table{staged, std::is_same_v<Value, float> ? reinterpret_cast<Value*>(staged)
                                                                        : reinterpret_cast<Value*>(after),
                                   least, most};
  auto* const list = reinterpret_cast<uint64_t*>(
      after + (std::is_same_v<Value, float> ? 0 : kParts * 256 * static_cast<int64_t>(sizeof(Value))));
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t blocks = kScan == TableScan::multi_pass ? task.slots : task.splits;  // of a query
  const int64_t query = blockIdx.x / blocks;
  const int64_t part_of = blockIdx.x % blocks;
  const auto k = static_cast<int>(task.k);
  if (thread < kTableCols) x[thread] = task.queries[query * kTableCols + thread];
  if (thread == 0) listed = 0;
  const float* const own = task.query_tables + query * kParts * 256;
  if (kTerm == TableTerm::of_vector) {
    for (int i = thread; i < kParts * 256; i += kTableThreads) staged[i] = own[i];
    table.make();
  }
  uint64_t bound = kith::kPadding;
  for (int64_t slot = part_of; slot < task.slots; slot += blocks) {
    const int64_t number = kith::row_of(task.probes[query * task.slots + slot]);
    const float* const centre = task.centres + number * kTableCols;
    __syncthreads();
    if (thread < 32) {
      float sum = 0;
      for (int c = thread; c < kTableCols; c += 32) sum += (x[c] - centre[c]) * (x[c] - centre[c]);
      for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, apart);
      if (thread == 0) centre_distance = sum;
    }
    if (kTerm == TableTerm::of_list) {
      const float* const of_list = task.list_tables + number * kParts * 256;
      for (int i = thread; i < kParts * 256; i += kTableThreads) staged[i] = own[i] + of_list[i];
      table.make();
    } else if (kTerm == TableTerm::none) {
      for (int part = 0; part < kParts; ++part) {
        const float* const w = task.codewords + (part * 256 + thread) * kCols;
        float sum = 0;
        for (int c = 0; c < kCols; ++c) {
          const float difference = x[part * kCols + c] - centre[part * kCols + c] - w[c];
          sum += difference * difference;
        }
        staged[part * 256 + thread] = sum;
      }
      table.make();
    } else {
      __syncthreads();
    }
    const float base = kTerm == TableTerm::none ? 0.0f : centre_distance;
    const int64_t begin = task.offsets[number];
    const auto length = static_cast<int>(task.offsets[number + 1] - begin);
    const auto distance = [&](int i) {
      const float term = kTerm == TableTerm::of_vector ? task.vector_terms[begin + i] : 0.0f;
      return base + term + table.sum(task.codes + (begin + i) * kParts);
    };
    if constexpr (kScan == TableScan::multi_pass) {
      float* const out = task.distances + query * task.distance_stride + task.starts[query * task.slots + slot];
      for (int i = thread; i < length; i += kTableThreads) out[i] = distance(i);
    } else {
      for (int first = 0; first < length; first += kTableRun) {
        for (int i = first + thread; i < min(first + kTableRun, length); i += kTableThreads) {
          const uint64_t entry =
              kith::pack_neighbor(kith::ordered_key(distance(i)), static_cast<uint32_t>(begin + i));
          if (entry < bound) list[atomicAdd(&listed, 1)] = entry;
        }
        __syncthreads();
        const int have = listed;
        __syncthreads();
        if (have + kTableRun <= k + 2 * kTableRun) continue;
        kith::sort_in_place(list, have);
        bound = list[k - 1];
        if (thread == 0) listed = k;
        __syncthreads();
      }
    }
  }
  if constexpr (kScan != TableScan::multi_pass) {
    __syncthreads();
    kith::sort_in_place(list, listed);
    uint64_t* const out = task.kept + (query * task.splits + part_of) * k;
    for (int i = thread; i < k; i += kTableThreads) out[i] = i < listed ? list[i] : kith::kPadding;
  }
}

// The k best of a query's splits, in the place of the first one's.
inline __global__ void __launch_bounds__(kTableThreads) table_merge_kernel(uint64_t* kept, int splits, int k) {
  extern __shared__ __align__(16) std::byte table_memory[];
  auto* const list = reinterpret_cast<uint64_t*>(table_memory);
  uint64_t* const mine = kept + static_cast<int64_t>(blockIdx.x) * splits * k;
  for (int i = static_cast<int>(threadIdx.x); i < splits * k; i += kTableThreads) list[i] = mine[i];
  __syncthreads();
  kith::sort_in_place(list, splits * k);
  for (int i = static_cast<int>(threadIdx.x); i < k; i += kTableThreads) mine[i] = list[i];
}
