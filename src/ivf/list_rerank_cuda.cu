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

// How a stored vector's columns are read, four at a time.
class AnyReader {
 public:
  __device__ explicit AnyReader(const DeviceListsView& lists) : codec_(lists.codec) {}
  __device__ FourFloats four(const uint8_t* code, int first) const { return decode_four(codec_, code, first); }

 private:
  const CodecView& codec_;
};

// Codes of 8 bits for sub-vectors of a multiple of four columns, fewer than 256 times four in all.
class CodewordReader {
 public:
  __device__ explicit CodewordReader(const DeviceListsView& lists)
      : codewords_(reinterpret_cast<const float4*>(lists.codec.codewords)),
        fours_(static_cast<int>(lists.codec.format.part_cols()) / 4),
        inverse_((65536 + fours_ - 1) / fours_) {}

  __device__ FourFloats four(const uint8_t* code, int first) const {
    const int unit = first / 4;
    const int part = unit * inverse_ >> 16;
    const float4 word = codewords_[(part * 256 + code[part]) * fours_ + unit - part * fours_];
    return {{word.x, word.y, word.z, word.w}};
  }

 private:
  const float4* codewords_;
  int fours_;
  int inverse_;
};

// f32 as stored; a multiple of four columns.
class FloatReader {
 public:
  __device__ explicit FloatReader(const DeviceListsView&) {}
  __device__ FourFloats four(const uint8_t* code, int first) const {
    const float4 values = reinterpret_cast<const float4*>(code)[first / 4];
    return {{values.x, values.y, values.z, values.w}};
  }
};

// Calls use(first column, four columns of the stored vector) for the columns of this thread's lanes.
template <typename Reader, typename Use>
__device__ void for_stored(const DeviceListsView& lists, const Reader& reader, const uint8_t* code, const float* centre,
                           const Use& use) {
  constexpr int kAhead = 4;  // loads that are under way at a time
  const auto cols = static_cast<int>(lists.codec.format.cols);
  const bool centred = lists.residual && centre != nullptr;
  const bool whole = cols % 4 == 0;
  for (int start = static_cast<int>(threadIdx.x) % kRowThreads * kRowThreadLanes; start < cols;
       start += kAhead * kCanonicalLanes) {
    FourFloats fours[kAhead] = {};
    FourFloats centres[kAhead] = {};
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      const int first = start + ahead * kCanonicalLanes;
      if (first < cols) fours[ahead] = reader.four(code, first);
      if (centred && first < cols) {
        if (whole) {
          const float4 four = *reinterpret_cast<const float4*>(centre + first);
          centres[ahead] = {{four.x, four.y, four.z, four.w}};
        } else {
          KITH_UNROLL
          for (int i = 0; i < 4; ++i) {
            if (first + i < cols) centres[ahead].values[i] = centre[first + i];
          }
        }
      }
    }
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      const int first = start + ahead * kCanonicalLanes;
      if (first >= cols) break;
      if (centred) {
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) {
          if (first + i < cols) fours[ahead].values[i] = __fadd_rn(centres[ahead].values[i], fours[ahead].values[i]);
        }
      }
      use(first, fours[ahead]);
    }
  }
}

// The canonical key of one stored vector, right in the first of the four threads that share it.
template <typename Reader>
__device__ float stored_key(const DeviceListsView& lists, const Reader& reader, const double* query, double inverse_q,
                            int64_t code_bytes, uint32_t position, uint32_t list) {
  const uint8_t* const code = lists.codes + position * code_bytes;
  const float* const centre =
      lists.centres == nullptr ? nullptr : lists.centres + static_cast<int64_t>(list) * lists.codec.format.cols;
  const unsigned threads = row_threads();
  double inverse_x = 1;
  if (lists.kind == KeyKind::cosine) {
    double lanes[kRowThreadLanes] = {};
    for_stored(lists, reader, code, centre, [&](int, const FourFloats& four) {
      KITH_UNROLL
      for (int i = 0; i < kRowThreadLanes; ++i) {
        const double x = four.values[i];
        lanes[i] = fma(x, x, lanes[i]);
      }
    });
    const double square = join_row_threads(lanes, threads);
    inverse_x = canonical_inverse_norm(__shfl_sync(threads, square, 0, kRowThreads));
  }
  double lanes[kRowThreadLanes] = {};
  const bool product = lists.kind == KeyKind::inner_product;
  for_stored(lists, reader, code, centre, [&](int first, const FourFloats& four) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) {
      const double x = four.values[i];
      if (product) {
        lanes[i] = fma(query[first + i], x, lanes[i]);
      } else {
        const double difference = query[first + i] - x * inverse_x;
        lanes[i] = fma(difference, difference, lanes[i]);
      }
    }
  });
  return candidate_key(lists.kind, join_row_threads(lanes, threads), inverse_q, inverse_x);
}

// Sorts different entries in shared memory by counting, for each, those before it: quicker than a network where there
// are hardly more than threads.
constexpr int kMostCounted = 2 * kRerankThreads;
__device__ void write_sorted(const uint64_t* list, int count, int64_t k, uint64_t* out) {
  const auto thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < count; i += kRerankThreads) {
    const uint64_t mine = list[i];
    int before = 0;
#pragma unroll 8
    for (int j = 0; j < count; ++j) before += list[j] < mine;
    if (before < k) out[before] = mine;
  }
  for (int64_t i = count + thread; i < k; i += kRerankThreads) out[i] = kPadding;
}

template <typename Reader, int kHeld>
__global__ void __launch_bounds__(kRerankThreads)
    list_rerank_kernel(const __grid_constant__ ListRerankTask task, int64_t code_bytes) {
  extern __shared__ __align__(16) uint64_t memory[];
  __shared__ typename BlockGroup<kRerankThreads>::Shared shared;
  __shared__ int stay;
  const int64_t query = blockIdx.x;
  const auto thread = static_cast<int>(threadIdx.x);
  const uint32_t given = task.candidates.counts[query];
  const auto leave = [&] {
    if (thread == 0) task.left.queries[atomicAdd(task.left.count, 1u)] = static_cast<uint32_t>(query);
  };
  if (task.unsure[query] != 0 || given > task.candidates.capacity) return leave();
  const auto count = static_cast<int>(given);
  const auto k = static_cast<int>(task.k);
  uint64_t* const list = memory;
  auto* const values = reinterpret_cast<double*>(memory + task.room);
  const float* const row = task.queries + query * task.query_stride;
  const ListCandidate* const entries = task.candidates.entries + query * task.candidates.capacity;
  const uint32_t* const entry_lists = task.candidates.lists + query * task.candidates.capacity;
  const double inverse_q = load_query(task.lists, row, values);
  // What is not ruled out is listed: position and list, in the places of keys and rows.
  int stays = count;
  if (count <= k + k / 2) {
    for (int i = thread; i < count; i += kRerankThreads) list[i] = pack_neighbor(entries[i].position, entry_lists[i]);
  } else {
    uint32_t keys[kHeld];
    KITH_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int place = i * kRerankThreads + thread;
      keys[i] = place < count ? ordered_key(entries[place].estimate) : kNanKey;
    }
    if (thread == 0) stay = 0;
    BlockGroup<kRerankThreads> group(shared);
    const float kth = key_of_ordered(find_cut(group, keys, AllRows(), 0, {k, k + k / kSlack}).key);
    const KeyKind kind = task.lists.kind;
    const ErrorBounds worst = task.worst[query];
    const PairBounds bounds{1, 0, worst.error, worst.moved, 1, 0};
    const double unit = query_unit(task.lists, task.prepared, row);
    const float upper = upper_bound(kind, bounds, kth);
    const float limit =
        reach_in_range(kind, upper, unit) ? value_limit(kind, bounds, reach_with_ties(kind, upper, unit)) : HUGE_VALF;
    __syncthreads();
    for (int place = thread; place < count; place += kRerankThreads) {
      const ListCandidate entry = entries[place];
      if (entry.estimate > limit) continue;
      const int at = atomicAdd(&stay, 1);
      if (at < task.room) list[at] = pack_neighbor(entry.position, entry_lists[place]);
    }
    __syncthreads();
    stays = stay;
    if (stays > task.room) return leave();
  }
  __syncthreads();
  const Reader reader(task.lists);
  for (int i = thread / kRowThreads; i < stays; i += kRerankThreads / kRowThreads) {
    const uint64_t entry = list[i];
    const uint32_t position = ordered_of(entry);
    const uint32_t number = task.lists.rows[position];
    const float key = stored_key(task.lists, reader, values, inverse_q, code_bytes, position, row_of(entry));
    if (thread % kRowThreads == 0) list[i] = pack_neighbor(ordered_key(key), number);
  }
  __syncthreads();
  uint64_t* const out = task.neighbors + query * task.k;
  if (stays <= kMostCounted) return write_sorted(list, stays, task.k, out);
  sort_in_place(list, stays);
  for (int64_t i = thread; i < task.k; i += kRerankThreads) out[i] = i < stays ? list[i] : kPadding;
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
  const AnyReader reader(task.lists);
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
              stored_key(task.lists, reader, values, inverse_q, code_bytes, static_cast<uint32_t>(position), number);
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
  const int64_t bytes = 8 * (task.room + padded_cols(format.cols));
  const auto launch = [&](auto kernel) {
    allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
    kernel<<<static_cast<unsigned>(task.query_count), kRerankThreads, static_cast<size_t>(bytes), stream>>>(
        task, format.bytes());
  };
  const bool few = task.candidates.capacity <= 16 * kRerankThreads;
  static_assert(32 * kRerankThreads == kMostListCandidates);
  if (format.kind == CodeKind::product && format.bits == 8 && format.part_cols() % 4 == 0 && format.cols <= 1024) {
    launch(few ? list_rerank_kernel<CodewordReader, 16> : list_rerank_kernel<CodewordReader, 32>);
  } else if (format.kind == CodeKind::stored && format.dtype == DType::f32 && format.cols % 4 == 0) {
    launch(few ? list_rerank_kernel<FloatReader, 16> : list_rerank_kernel<FloatReader, 32>);
  } else {
    launch(few ? list_rerank_kernel<AnyReader, 16> : list_rerank_kernel<AnyReader, 32>);
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
