#include "ivf/list_rerank_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "cuda/shared_memory.hpp"
#include "ivf/decode_four_cuda.hpp"
#include "ivf/query_unit_cuda.hpp"
#include "kernels/distance/kept_rows_cuda.hpp"
#include "kernels/distance/row_threads_cuda.hpp"
#include "kernels/rerank/candidate_key_cuda.hpp"
#include "kernels/select/device_group_cuda.hpp"
#include "kernels/select/key_cut.hpp"
#include "kernels/select/sort_in_place_cuda.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int kRerankThreads = 128;
constexpr int kDirectThreads = 512;
constexpr int kSlack = 64;
constexpr int64_t kDirectSharedBytes = int64_t{160} << 10;

struct AllRows {
  __device__ int count(uint32_t, uint32_t) const { return 0; }
};

KITH_HOST_DEVICE inline int64_t padded_cols(int64_t cols) {
  return (cols + kCanonicalLanes - 1) / kCanonicalLanes * kCanonicalLanes;
}

// A query in shared memory as doubles, for cosine of length 1; zeros past its columns. All threads of the block.
__device__ double load_query(const DeviceListsView& lists, const float* values, double* query) {
  const auto cols = static_cast<int>(lists.codec.format.cols);
  for (int col = static_cast<int>(threadIdx.x); col < padded_cols(cols); col += static_cast<int>(blockDim.x)) {
    query[col] = col < cols ? static_cast<double>(values[col]) : 0.0;
  }
  __syncthreads();
  if (lists.kind != KeyKind::cosine) return 1;
  // Four threads after the canonical order, in every warp.
  double lanes[kRowThreadLanes] = {};
  for (int first = static_cast<int>(threadIdx.x) % kRowThreads * kRowThreadLanes; first < cols;
       first += kCanonicalLanes) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) lanes[i] = fma(query[first + i], query[first + i], lanes[i]);
  }
  const double square = __shfl_sync(0xFFFFFFFFu, join_row_threads(lanes, row_threads()), 0);
  const double inverse = canonical_inverse_norm(square);
  __syncthreads();
  for (int col = static_cast<int>(threadIdx.x); col < cols; col += static_cast<int>(blockDim.x)) query[col] *= inverse;
  __syncthreads();
  return inverse;
}

// The stored vector's columns.
__device__ FourFloats stored_four(const DeviceListsView& lists, const uint8_t* code, const float* centre, int first) {
  FourFloats four = decode_four(lists.codec, code, first);
  if (!lists.residual || centre == nullptr) return four;
  const auto cols = static_cast<int>(lists.codec.format.cols);
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (first + i < cols) four.values[i] = __fadd_rn(centre[first + i], four.values[i]);
  }
  return four;
}

// The canonical key of one stored vector, right in the first of the four threads that share it.
__device__ float stored_key(const DeviceListsView& lists, const double* query, double inverse_q, int64_t code_bytes,
                            uint32_t position, uint32_t list) {
  const auto cols = static_cast<int>(lists.codec.format.cols);
  const uint8_t* const code = lists.codes + position * code_bytes;
  const float* const centre = lists.centres == nullptr ? nullptr : lists.centres + static_cast<int64_t>(list) * cols;
  const unsigned threads = row_threads();
  const int start = static_cast<int>(threadIdx.x) % kRowThreads * kRowThreadLanes;
  double inverse_x = 1;
  if (lists.kind == KeyKind::cosine) {
    double lanes[kRowThreadLanes] = {};
    for (int first = start; first < cols; first += kCanonicalLanes) {
      const FourFloats four = stored_four(lists, code, centre, first);
      KITH_UNROLL
      for (int i = 0; i < kRowThreadLanes; ++i) {
        const double x = four.values[i];
        lanes[i] = fma(x, x, lanes[i]);
      }
    }
    const double square = join_row_threads(lanes, threads);
    inverse_x = canonical_inverse_norm(__shfl_sync(threads, square, 0, kRowThreads));
  }
  double lanes[kRowThreadLanes] = {};
  for (int first = start; first < cols; first += kCanonicalLanes) {
    const FourFloats four = stored_four(lists, code, centre, first);
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) {
      const double x = four.values[i];
      if (lists.kind == KeyKind::inner_product) {
        lanes[i] = fma(query[first + i], x, lanes[i]);
      } else {
        const double difference = query[first + i] - x * inverse_x;
        lanes[i] = fma(difference, difference, lanes[i]);
      }
    }
  }
  return candidate_key(lists.kind, join_row_threads(lanes, threads), inverse_q, inverse_x);
}

template <int kHeld>
__global__ void __launch_bounds__(kRerankThreads)
    list_rerank_kernel(const __grid_constant__ ListRerankTask task, int64_t code_bytes) {
  extern __shared__ __align__(16) uint64_t memory[];
  __shared__ typename BlockGroup<kRerankThreads>::Shared shared;
  __shared__ int stay;
  BlockGroup<kRerankThreads> group(shared);
  const int64_t query = blockIdx.x;
  const auto thread = static_cast<int>(threadIdx.x);
  const uint32_t count = task.candidates.counts[query];
  if (task.unsure[query] != 0 || count > task.candidates.capacity) {
    if (thread == 0) task.left.queries[atomicAdd(task.left.count, 1u)] = static_cast<uint32_t>(query);
    return;
  }
  uint64_t* const list = memory;
  auto* const values = reinterpret_cast<double*>(memory + task.candidates.capacity);
  const float* const given = task.queries + query * task.query_stride;
  const ListCandidate* const entries = task.candidates.entries + query * task.candidates.capacity;
  // What is not ruled out is listed: position and list, in the places of keys and rows.
  uint32_t keys[kHeld];
  KITH_UNROLL
  for (int i = 0; i < kHeld; ++i) {
    const int place = i * kRerankThreads + thread;
    keys[i] = place < static_cast<int>(count) ? ordered_key(entries[place].upper) : kNanKey;
  }
  if (thread == 0) stay = 0;
  const KeyKind kind = task.lists.kind;
  const double unit = query_unit(task.lists, task.prepared, given);
  const double inverse_q = load_query(task.lists, given, values);
  float limit = HUGE_VALF;
  if (count > task.k) {
    const auto k = static_cast<int>(task.k);
    const float upper = key_of_ordered(find_cut(group, keys, AllRows(), 0, {k, k + k / kSlack}).key);
    if (reach_in_range(kind, upper, unit)) {
      const double reach = reach_with_ties(kind, upper, unit);
      const double wider = reach + fabs(reach) * 0x1p-22;
      if (wider < 1e37) limit = static_cast<float>(wider);
    }
  }
  __syncthreads();
  for (int place = thread; place < static_cast<int>(count); place += kRerankThreads) {
    const ListCandidate entry = entries[place];
    if (!(entry.lower > limit)) list[atomicAdd(&stay, 1)] = pack_neighbor(entry.position, entry.list);
  }
  __syncthreads();
  const int stays = stay;
  for (int i = thread / kRowThreads; i < stays; i += kRerankThreads / kRowThreads) {
    const uint64_t entry = list[i];
    __syncwarp(row_threads());
    const uint32_t position = ordered_of(entry);
    const float key = stored_key(task.lists, values, inverse_q, code_bytes, position, row_of(entry));
    if (thread % kRowThreads == 0) list[i] = pack_neighbor(ordered_key(key), task.lists.rows[position]);
  }
  __syncthreads();
  sort_in_place(list, stays);
  for (int64_t i = thread; i < task.k; i += kRerankThreads) {
    task.neighbors[query * task.k + i] = i < stays ? list[i] : kPadding;
  }
}

// A list of what is nearest so far, which is sorted and cut whenever it may be full.
__global__ void __launch_bounds__(kDirectThreads)
    list_direct_kernel(const __grid_constant__ ListRerankTask task, int64_t code_bytes, int64_t room, bool all) {
  extern __shared__ __align__(16) uint64_t memory[];
  __shared__ int listed;
  auto* const values = reinterpret_cast<double*>(memory);
  uint64_t* const list =
      task.spare == nullptr ? memory + padded_cols(task.lists.codec.format.cols) : task.spare + blockIdx.x * room;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto k = static_cast<int>(task.k);
  constexpr int kTogether = kDirectThreads / kRowThreads;
  const int64_t count = all ? task.query_count : int64_t{*task.left.count};
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    const int64_t query = all ? i : int64_t{task.left.queries[i]};
    __syncthreads();
    if (thread == 0) listed = 0;
    const double inverse_q = load_query(task.lists, task.queries + query * task.query_stride, values);
    uint64_t bound = kPadding;
    for (int64_t slot = 0; slot < task.slots; ++slot) {
      const uint64_t probe = task.probes[query * task.slots + slot];
      if (probe == kPadding || row_of(probe) >= task.lists.lists) continue;
      const uint32_t number = row_of(probe);
      const int64_t end = task.lists.offsets[number + 1];
      for (int64_t first = task.lists.offsets[number]; first < end; first += kTogether) {
        const int64_t position = first + thread / kRowThreads;
        const bool real = position < end && (task.kept == nullptr || is_kept(task.kept, task.lists.rows[position]));
        if (real) {
          const float key =
              stored_key(task.lists, values, inverse_q, code_bytes, static_cast<uint32_t>(position), number);
          const uint64_t entry = pack_neighbor(ordered_key(key), task.lists.rows[position]);
          if (thread % kRowThreads == 0 && entry < bound) list[atomicAdd(&listed, 1)] = entry;
        }
        __syncthreads();
        const int have = listed;
        __syncthreads();
        if (have + kTogether <= room) continue;
        sort_in_place(list, have);
        if (have >= k) {
          bound = list[k - 1];
          if (thread == 0) listed = k;
        }
        __syncthreads();
      }
    }
    __syncthreads();
    const int have = listed;
    sort_in_place(list, have);
    for (int at = thread; at < k; at += kDirectThreads) {
      task.neighbors[query * task.k + at] = at < have ? list[at] : kPadding;
    }
  }
}

}  // namespace

int64_t direct_room(int64_t k) { return k + 4096; }

bool direct_needs_spare(int64_t k, int64_t cols) {
  return 8 * (direct_room(k) + padded_cols(cols)) > kDirectSharedBytes;
}

int64_t direct_blocks(int multiprocessors, int64_t k) {
  constexpr int64_t kMostSpareBytes = int64_t{1} << 30;
  return std::max<int64_t>(1, std::min<int64_t>(multiprocessors, kMostSpareBytes / (8 * direct_room(k))));
}

void launch_list_rerank(const ListRerankTask& task, cudaStream_t stream) {
  if (task.query_count == 0) return;
  const CodeFormat& format = task.lists.codec.format;
  const int64_t bytes = 8 * (task.candidates.capacity + padded_cols(format.cols));
  const auto run = [&](auto kernel) {
    allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
    kernel<<<static_cast<unsigned>(task.query_count), kRerankThreads, static_cast<size_t>(bytes), stream>>>(
        task, format.bytes());
  };
  if (task.candidates.capacity <= 8 * kRerankThreads) {
    run(list_rerank_kernel<8>);
  } else if (task.candidates.capacity <= 16 * kRerankThreads) {
    run(list_rerank_kernel<16>);
  } else {
    run(list_rerank_kernel<32>);
  }
  KITH_CUDA_CHECK_LAUNCH("list_rerank_kernel");
}

void launch_list_direct(const ListRerankTask& task, cudaStream_t stream) {
  if (task.query_count == 0) return;
  const CodeFormat& format = task.lists.codec.format;
  const int64_t room = direct_room(task.k);
  const bool spare = direct_needs_spare(task.k, format.cols);
  const int64_t bytes = 8 * (padded_cols(format.cols) + (spare ? 0 : room));
  ListRerankTask direct = task;
  if (!spare) direct.spare = nullptr;
  allow_all_shared_memory(reinterpret_cast<const void*>(&list_direct_kernel));
  const int64_t blocks = std::min(task.query_count, direct_blocks(task.multiprocessors, task.k));
  list_direct_kernel<<<static_cast<unsigned>(blocks), kDirectThreads, static_cast<size_t>(bytes), stream>>>(
      direct, format.bytes(), room, task.candidates.entries == nullptr);
  KITH_CUDA_CHECK_LAUNCH("list_direct_kernel");
}

}  // namespace kith
