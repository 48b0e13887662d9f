// A block for each query. Four threads compute a candidate's canonical key, four lanes of the canonical sum each; keys
// within the query's limit, hardly more than k, are collected in shared memory and sorted there. Bound by the reads of
// the candidates' rows.
#include "kernels/rerank/rerank_cuda.hpp"

#include "core/dtype_visit.hpp"
#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/warp.hpp"
#include "kernels/rerank/candidate_key_cuda.hpp"
#include "kernels/select/sort_in_place_cuda.hpp"
#include "rows/kept_rows_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kFewThreads = 1024;  // threads per block if queries are fewer than multiprocessors
constexpr int64_t kFewQueries = 128;
constexpr int64_t kGroupsRoom = 512;  // rows of groups within the limit, hardly more than k
// Large lists limit the blocks per multiprocessor; larger blocks keep the number of threads.
constexpr int64_t kMediumBytes = int64_t{48} << 10;
constexpr int64_t kLargeBytes = int64_t{114} << 10;

// Prefetches a row that four threads will read piece by piece; for a long row each piece would wait for device
// memory.
template <typename X>
__device__ void fetch_ahead(const X* row, int64_t cols) {
  constexpr int64_t kLine = 128;
  constexpr int64_t kLongRow = 16 * kLine;
  const auto bytes = cols * static_cast<int64_t>(sizeof(X));
  if (bytes < kLongRow) return;
  const auto* const start = vectors<std::byte>(row);
  for (int64_t at = threadIdx.x % kRowThreads * kLine; at < bytes; at += kRowThreads * kLine) ptx::prefetch(start + at);
}

// Any number of whole warps up to kFewThreads threads.
template <bool kProduct, typename X>
__global__ void __launch_bounds__(kFewThreads) rerank_kernel(RerankTask task, FailedQueries failed) {
  extern __shared__ __align__(16) uint64_t memory[];
  __shared__ int count;
  uint64_t* const list = memory;
  double* const query_values = vectors<double>(memory + task.room);
  const int64_t query = blockIdx.x;
  const bool by_groups = task.row_counts == nullptr;
  const int rows_each = group_rows(task.tiles_per_group);
  const int64_t candidates =
      by_groups ? int64_t{task.group_counts[query]} * rows_each : int64_t{task.row_counts[query]};
  const bool lost = candidates < 0 || (!by_groups && (candidates > task.capacity || task.key_limits[query] == 0));
  const auto fail = [&] {
    if (threadIdx.x == 0) failed.add(query);
  };
  if (lost) return fail();
  if (threadIdx.x == 0) count = 0;
  const bool unit = task.kind == KeyKind::cosine;
  const double inverse_q = unit ? task.queries.inverse_norms[query] : 1.0;
  // Bytes unconverted if that is faster; cosine scales them.
  const bool as_bytes = sizeof(X) == 1 && task.queries.dtype == task.base.dtype && !unit && task.cols % 16 == 0 &&
                        task.base.stride % 16 == 0 && is_aligned(task.base.data, 16);
  if (as_bytes) {
    const auto* from = static_cast<const uint8_t*>(task.queries.data) + query * task.queries.stride;
    for (int64_t col = threadIdx.x; col < task.cols; col += blockDim.x) {
      vectors<uint8_t>(query_values)[col] = from[col];
    }
  } else {
    widen_query(task.queries, query, task.cols, inverse_q, query_values);
  }
  __syncthreads();

  const uint32_t limit = task.key_limits[query];
  const X* const base = static_cast<const X*>(task.base.data);
  const bool aligned = rows_aligned(base, task.base.stride);
  for (int64_t i = threadIdx.x / kRowThreads; i < candidates; i += blockDim.x / kRowThreads) {
    const int64_t row = by_groups ? group_row(task.groups[query * task.group_stride + i / rows_each],
                                              static_cast<int>(i % rows_each), task.tiles_per_group)
                                  : int64_t{task.rows[query * task.capacity + i]};
    if (row >= task.base.count) continue;
    const uint32_t number = task.numbers == nullptr ? task.first_row + static_cast<uint32_t>(row) : task.numbers[row];
    if (task.kept != nullptr && !is_kept(task.kept, number)) continue;
    const double inverse_x = unit ? task.base.inverse_norms[row] : 1.0;
    const X* const values = task.base.row<X>(row);
    fetch_ahead(values, task.cols);
    double sum = 0;
    if constexpr (sizeof(X) == 1) {
      sum = as_bytes ? byte_row_sum<kProduct>(vectors<uint32_t>(query_values), values, task.cols)
                     : row_sum<kProduct>(query_values, values, task.cols, aligned, inverse_x);
    } else {
      sum = row_sum<kProduct>(query_values, values, task.cols, aligned, inverse_x);
    }
    if (threadIdx.x % kRowThreads != 0) continue;
    const uint32_t ordered = ordered_key(candidate_key(task.kind, sum, inverse_q, inverse_x));
    if (ordered > limit) continue;
    const int place = atomicAdd(&count, 1);
    if (place < task.room) list[place] = pack_neighbor(ordered, number);
  }
  __syncthreads();
  const int found = count;
  const bool all = task.range.hits != nullptr;
  if (found > task.room || (!all && !task.pads && found < task.k)) return fail();
  sort_in_place(list, found);
  if (all) {
    __shared__ RangePlaces places;
    if (!take_places(task.range, query, static_cast<uint32_t>(found), places)) return fail();
    for (int i = static_cast<int>(threadIdx.x); i < found; i += static_cast<int>(blockDim.x)) {
      task.range.hits[places.start + static_cast<uint32_t>(i)] = list[i];
    }
    return;
  }
  for (int64_t i = threadIdx.x; i < task.k; i += blockDim.x) {
    task.neighbors[query * task.k + i] = i < found ? list[i] : kPadding;
  }
}

__global__ void __launch_bounds__(kThreads)
    gather_kernel(FailedQueries failed, GatherTask task, GatheredQueries to, int64_t size) {
  const int64_t query = failed.queries[task.first + blockIdx.x];
  const auto* const from = static_cast<const std::byte*>(task.queries.data) + query * task.queries.stride * size;
  const int64_t row_bytes = task.cols * size;
  for (int64_t i = threadIdx.x; i < row_bytes; i += kThreads) to.rows[blockIdx.x * row_bytes + i] = from[i];
  if (threadIdx.x != 0) return;
  if (to.inverse_norms != nullptr) to.inverse_norms[blockIdx.x] = task.queries.inverse_norms[query];
  if (to.thresholds != nullptr) to.thresholds[blockIdx.x] = task.thresholds[query];
  if (to.key_limits != nullptr) to.key_limits[blockIdx.x] = task.key_limits[query];
}

__global__ void __launch_bounds__(kThreads)
    scatter_kernel(FailedQueries failed, int64_t first, const uint64_t* found, int64_t k, uint64_t* neighbors) {
  const int64_t query = failed.queries[first + blockIdx.x];
  for (int64_t i = threadIdx.x; i < k; i += kThreads) neighbors[query * k + i] = found[blockIdx.x * k + i];
}

// The place of an entry is its own rank plus its rank in the other list. Rows differ, so only padding is equal.
__global__ void __launch_bounds__(kThreads) merge_kernel(const uint64_t* found, uint64_t* lists, int k) {
  extern __shared__ __align__(16) uint64_t memory[];  // copy of the list that is overwritten
  uint64_t* const mine = lists + static_cast<int64_t>(blockIdx.x) * k;
  const uint64_t* const other = found + static_cast<int64_t>(blockIdx.x) * k;
  for (int i = static_cast<int>(threadIdx.x); i < k; i += kThreads) memory[i] = mine[i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < 2 * k; i += kThreads) {
    const bool first = i < k;
    const uint64_t entry = first ? memory[i] : other[i - k];
    if (entry == kPadding) continue;
    const int place = (first ? i : i - k) + rank_in_list(first ? other : memory, k, entry);
    if (place < k) mine[place] = entry;
  }
}

// Re-ranks marked candidates by a block per query, of one warp if there are many queries: then nothing waits for
// barriers, and a multiprocessor runs a dozen queries at different steps. Marks become a list of rows in shared memory,
// four threads compute a row's canonical key, and the list is sorted in place. Up to 128 columns the query stays in
// registers, so that only rows are loaded: the time is that of reading them from the L2 cache.
constexpr int64_t kManyQueries = 2048;  // from this number on, one warp per query
constexpr int64_t kWarpRoom = 1024;     // up to this many candidates
constexpr int kSteps = 8;               // of sixteen columns that a query in registers has
constexpr int kResidentCols = kSteps * kCanonicalLanes;
constexpr int64_t kAnyKernelsBytes = int64_t{40} << 10;  // shared memory available without an attribute
constexpr int kMarkLoads = 2;                            // loads of marks in flight

// The columns of a query that belong to one of the four threads.
struct ResidentQuery {
  double values[kSteps * kRowThreadLanes];
};

// The canonical sum of one row of up to kResidentCols columns, a multiple of four; right in the first of four threads.
template <bool kProduct, bool kUnit, typename X>
__device__ double resident_sum(const ResidentQuery& query, const Four<X> (&row)[kSteps], double inverse_norm) {
  double lanes[kRowThreadLanes] = {};
  KITH_UNROLL
  for (int step = 0; step < kSteps; ++step) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) {
      const double q = query.values[step * kRowThreadLanes + i];
      const double x = static_cast<double>(row[step].values[i]);
      if constexpr (kProduct) {
        lanes[i] = fma(q, x, lanes[i]);
      } else {
        const double difference = q - (kUnit ? x * inverse_norm : x);
        lanes[i] = fma(difference, difference, lanes[i]);
      }
    }
  }
  return join_row_threads(lanes, row_threads());
}

// Lists the marked rows, in no order, and returns how many there are: more than `room` are not all listed. There is a
// barrier before the return.
__device__ int list_marked(const uint32_t* marks, int words, uint64_t* list, int room, int* count) {
  if (threadIdx.x == 0) *count = 0;
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int step = 4 * static_cast<int>(blockDim.x);  // words of one load
  for (int first = 4 * static_cast<int>(threadIdx.x); first - 4 * static_cast<int>(threadIdx.x) < words;
       first += kMarkLoads * step) {
    uint4 fours[kMarkLoads] = {};
    KITH_UNROLL
    for (int load = 0; load < kMarkLoads; ++load) {
      if (first + load * step < words) fours[load] = load_vector<uint4>(marks + first + load * step);
    }
    int marked = 0;
    KITH_UNROLL
    for (const uint4& four : fours) marked += __popc(four.x) + __popc(four.y) + __popc(four.z) + __popc(four.w);
    const int before = warp_inclusive(marked);
    int start = 0;
    if (lane == 31 && before > 0) start = atomicAdd(count, before);
    int place = __shfl_sync(kAllLanes, start, 31) + before - marked;
    KITH_UNROLL
    for (int i = 0; i < 4 * kMarkLoads; ++i) {
      const uint4& four = fours[i / 4];
      uint32_t bits = i % 4 == 0 ? four.x : i % 4 == 1 ? four.y : i % 4 == 2 ? four.z : four.w;
      while (bits != 0) {
        const int bit = __ffs(static_cast<int>(bits)) - 1;
        bits &= bits - 1;
        if (place < room) list[place] = static_cast<uint64_t>(marked_row(first + i / 4 * step + i % 4, bit));
        ++place;
      }
    }
  }
  __syncthreads();
  return *count;
}

// Not inlined: one copy serves the kernels of all dtypes.
__device__ __noinline__ void sort_list(uint64_t* list, int count) {
  if (blockDim.x == 32 && count <= 8 * 32) {
    if (count <= 32) {
      sort_run<1>(list, 0, count);
    } else if (count <= 64) {
      sort_run<2>(list, 0, count);
    } else if (count <= 128) {
      sort_run<4>(list, 0, count);
    } else if (count <= 160) {
      sort_run<5>(list, 0, count);
    } else {
      sort_run<8>(list, 0, count);
    }
    __syncwarp();
    return;
  }
  sort_in_place(list, count);
  __syncthreads();
}

// `kResident`: the query stays in registers; rows are aligned and have a multiple of four columns.
template <bool kProduct, bool kResident, typename X>
__global__ void __launch_bounds__(kThreads) rerank_marked_kernel(RerankTask task, FailedQueries failed) {
  extern __shared__ __align__(16) uint64_t memory[];
  __shared__ int marked;
  uint64_t* const list = memory;
  double* const query_values = vectors<double>(memory + task.room);
  const int64_t query = blockIdx.x;
  const auto fail = [&] {
    if (threadIdx.x == 0) failed.add(query);
  };
  ptx::wait_for_kernel_before();
  const uint32_t limit = task.key_limits[query];
  if (limit == 0) return fail();
  const bool unit = task.kind == KeyKind::cosine;
  const double inverse_q = unit ? task.queries.inverse_norms[query] : 1.0;
  widen_query(task.queries, query, task.cols, inverse_q, query_values);
  const int words = static_cast<int>(mark_words(task.base.count));
  const int count = list_marked(task.marks + query * words, words, list, static_cast<int>(task.room), &marked);
  if (count > task.room || (count < task.k && !task.pads)) return fail();

  const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
  ResidentQuery resident;
  if constexpr (kResident) {
    KITH_UNROLL
    for (int i = 0; i < kSteps * kRowThreadLanes; ++i) {
      const int col = i / kRowThreadLanes * kCanonicalLanes + kRowThreadLanes * thread + i % kRowThreadLanes;
      resident.values[i] = col < task.cols ? query_values[col] : 0.0;
    }
  }
  const bool aligned = rows_aligned(static_cast<const X*>(task.base.data), task.base.stride);
  for (int i = static_cast<int>(threadIdx.x) / kRowThreads; i < count;
       i += static_cast<int>(blockDim.x) / kRowThreads) {
    const auto row = static_cast<int64_t>(list[i]);
    const bool real = row < task.base.count;
    uint64_t entry = kPadding;
    if (real) {
      const X* const values = task.base.row<X>(row);
      const double inverse_x = unit ? task.base.inverse_norms[row] : 1.0;
      double sum = 0;
      if constexpr (kResident) {
        Four<X> fours[kSteps] = {};
        KITH_UNROLL
        for (int step = 0; step < kSteps; ++step) {
          const int col = step * kCanonicalLanes + kRowThreadLanes * thread;
          if (col < task.cols) fours[step] = load_vector<Four<X>>(values + col);
        }
        sum = !kProduct && unit ? resident_sum<kProduct, true>(resident, fours, inverse_x)
                                : resident_sum<kProduct, false>(resident, fours, inverse_x);
      } else {
        sum = row_sum<kProduct>(query_values, values, task.cols, aligned, inverse_x);
      }
      const uint32_t number = task.numbers == nullptr ? task.first_row + static_cast<uint32_t>(row) : task.numbers[row];
      const uint32_t ordered = ordered_key(candidate_key(task.kind, sum, inverse_q, inverse_x));
      const bool kept = task.kept == nullptr || is_kept(task.kept, number);
      if (kept && ordered <= limit) entry = pack_neighbor(ordered, number);
    }
    __syncwarp(row_threads());  // all four have read the row
    if (thread == 0) list[i] = entry;
  }
  __syncthreads();
  sort_list(list, count);
  if (!task.pads && list[task.k - 1] == kPadding) return fail();
  for (int64_t i = threadIdx.x; i < task.k; i += blockDim.x) {
    task.neighbors[query * task.k + i] = i < count ? list[i] : kPadding;
  }
}

unsigned marked_threads(const RerankTask& task) {
  return task.queries.count >= kManyQueries && task.room <= kWarpRoom ? 32 : kThreads;
}

// Whether the rows are such that a query can stay in registers.
bool can_stay(const RerankTask& task) {
  const int64_t size = size_of(task.base.dtype);
  return task.cols <= kResidentCols && task.cols % kRowThreadLanes == 0 && task.base.stride % kRowThreadLanes == 0 &&
         is_aligned(task.base.data, kRowThreadLanes * size);
}

template <typename X>
auto marked_kernel_for(bool product, bool resident) {
  if (product) return resident ? rerank_marked_kernel<true, true, X> : rerank_marked_kernel<true, false, X>;
  return resident ? rerank_marked_kernel<false, true, X> : rerank_marked_kernel<false, false, X>;
}

int rerank_threads(int64_t queries, int64_t bytes) {
  if (queries < kFewQueries || bytes > kLargeBytes) return kFewThreads;
  return bytes > kMediumBytes ? 2 * kThreads : kThreads;
}

}  // namespace

void launch_rerank(const RerankTask& given, const FailedQueries& failed, cudaStream_t stream) {
  if (given.queries.count == 0) return;
  RerankTask task = given;
  if (task.marks == nullptr && task.row_counts == nullptr) task.room = kGroupsRoom;
  task.room += task.room % 2;  // the query follows it, and is read in units of sixteen bytes
  const int64_t bytes = rerank_bytes(task.room, task.cols);
  const bool product = task.kind == KeyKind::inner_product;
  visit_dtype(task.base.dtype, [&]<typename X>(StoredAs<X>) {
    if (task.marks != nullptr) {
      const auto kernel = marked_kernel_for<X>(product, can_stay(task));
      if (bytes > kAnyKernelsBytes) allow_all_shared_memory(kernel);
      const Grid grid = Grid::of(task.queries.count, marked_threads(task)).with_shared(bytes);
      return launch(kernel, grid.chained(), stream, task, failed);
    }
    const auto kernel = product ? rerank_kernel<true, X> : rerank_kernel<false, X>;
    allow_all_shared_memory(kernel);
    const Grid grid = Grid::of(task.queries.count, rerank_threads(task.queries.count, bytes));
    launch(kernel, grid.with_shared(bytes), stream, task, failed);
  });
}

void launch_gather_failed(const FailedQueries& failed, const GatherTask& task, const GatheredQueries& to,
                          cudaStream_t stream) {
  launch(gather_kernel, Grid::of(task.count, kThreads), stream, failed, task, to, size_of(task.queries.dtype));
}

void launch_scatter_failed(const FailedQueries& failed, int64_t first, int64_t count, const uint64_t* found, int64_t k,
                           uint64_t* neighbors, cudaStream_t stream) {
  launch(scatter_kernel, Grid::of(count, kThreads), stream, failed, first, found, k, neighbors);
}

void launch_merge_lists(const uint64_t* found, uint64_t* lists, int64_t queries, int64_t k, cudaStream_t stream) {
  if (queries == 0) return;
  allow_all_shared_memory(merge_kernel);
  launch(merge_kernel, Grid::of(queries, kThreads).with_shared(array_bytes<uint64_t>(k)), stream, found, lists,
         static_cast<int>(k));
}

}  // namespace kith
