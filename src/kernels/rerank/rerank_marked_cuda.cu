// A block for each query, of one warp where queries are many: nothing then waits for a barrier, and a multiprocessor
// holds a dozen queries at different steps. Marks become a list of rows in shared memory, four threads compute a row's
// canonical key, and the list is sorted where it lies. Up to 128 columns the query stays in registers, so that all
// loads are those of the rows: time is that of reading them from the L2 cache.
#include "kernels/rerank/rerank_cuda.hpp"

#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "rows/kept_rows_cuda.hpp"
#include "kernels/rerank/candidate_key_cuda.hpp"
#include "kernels/select/sort_in_place_cuda.hpp"

namespace kith {
namespace {

constexpr int kMostThreads = 256;
constexpr int64_t kManyQueries = 2048;  // from so many on one warp is enough for each
constexpr int64_t kWarpRoom = 1024;     // up to so many candidates
constexpr int kSteps = 8;               // of sixteen columns that a query in registers has
constexpr int kResidentCols = kSteps * kCanonicalLanes;
constexpr int64_t kAnyKernelsBytes = int64_t{40} << 10;  // of shared memory, which need no asking for
constexpr int kMarkLoads = 2;                            // of marks that are under way at a time
constexpr unsigned kWarp = 0xFFFFFFFFu;

// The columns of a query that one of the four threads multiplies.
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
    int before = marked;
    KITH_UNROLL
    for (int apart = 1; apart < 32; apart *= 2) {
      const int other = __shfl_up_sync(kWarp, before, static_cast<unsigned>(apart));
      if (lane >= apart) before += other;
    }
    int start = 0;
    if (lane == 31 && before > 0) start = atomicAdd(count, before);
    int place = __shfl_sync(kWarp, start, 31) + before - marked;
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
__global__ void __launch_bounds__(kMostThreads) rerank_marked_kernel(RerankTask task, FailedQueries failed) {
  extern __shared__ __align__(16) uint64_t memory[];
  __shared__ int marked;
  uint64_t* const list = memory;
  double* const query_values = vectors<double>(memory + task.room);
  const int64_t query = blockIdx.x;
  const auto fail = [&] {
    if (threadIdx.x == 0) failed.queries[atomicAdd(failed.count, 1u)] = static_cast<uint32_t>(query);
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
  return task.queries.count >= kManyQueries && task.room <= kWarpRoom ? 32 : kMostThreads;
}

// Whether the rows are such that a query can stay in registers.
bool can_stay(const RerankTask& task) {
  const int64_t size = size_of(task.base.dtype);
  return task.cols <= kResidentCols && task.cols % kRowThreadLanes == 0 && task.base.stride % kRowThreadLanes == 0 &&
         is_aligned(task.base.data, kRowThreadLanes * size);
}

template <typename X>
auto kernel_for(bool product, bool resident) {
  if (product) return resident ? rerank_marked_kernel<true, true, X> : rerank_marked_kernel<true, false, X>;
  return resident ? rerank_marked_kernel<false, true, X> : rerank_marked_kernel<false, false, X>;
}

}  // namespace

void launch_rerank_marked(const RerankTask& given, const FailedQueries& failed, cudaStream_t stream) {
  RerankTask task = given;
  task.room += task.room % 2;  // behind it lies the query, which is read by sixteen bytes
  const int64_t bytes = rerank_bytes(task.room, task.cols);
  visit_dtype(task.base.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    const auto kernel = kernel_for<X>(task.kind == KeyKind::inner_product, can_stay(task));
    if (bytes > kAnyKernelsBytes) allow_all_shared_memory(kernel);
    const Grid grid = Grid::of(task.queries.count, marked_threads(task)).with_shared(bytes);
    launch(kernel, grid.chained(), stream, task, failed);
  });
}

}  // namespace kith
