// A block for each query: canonical keys of its candidates, four threads each, sorted in shared memory.
//
// Most places have one row. Rows are numbered through the places, 64 at a time; where there are more than the list has
// room for (thousands of equal rows at one place) it is sorted and cut to the first k.
#include "index/graph_compare_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/warp.hpp"
#include "graph/search/walk/walk_results_cuda.hpp"
#include "index/after_walk.hpp"
#include "kernels/distance/row_sum_cuda.hpp"
#include "kernels/rerank/candidate_key_cuda.hpp"
#include "kernels/select/sort_in_place_cuda.hpp"

namespace kith {
namespace {

constexpr int kCompareThreads = 256;
constexpr int kCompareRows = kCompareThreads / kRowThreads;
constexpr int kRankedAtOnce = 256;  // candidates
constexpr int kPlacesAtOnce = 64;

int64_t compare_room(int64_t candidates, int64_t k) { return candidates + k + 256; }
int64_t compare_bytes(int64_t cols, int64_t candidates, int64_t k) {
  return 8 * (padded_cols(cols) + compare_room(candidates, k));
}

// Stored bytes, four columns in one load; columns are a multiple of four.
template <typename X>
class BytesReader {
 public:
  __device__ BytesReader(const CodecView&, const uint8_t*) {}
  __device__ FourFloats four(const uint8_t* code, int first) const {
    const auto bytes = load_vector<Four<X>>(code + first);
    return {{static_cast<float>(bytes.values[0]), static_cast<float>(bytes.values[1]),
             static_cast<float>(bytes.values[2]), static_cast<float>(bytes.values[3])}};
  }
};

// The rows at a place: `first` of rows[], or itself.
struct RowsAtPlace {
  const uint32_t* rows = nullptr;  // null: the one row `first`
  uint32_t first = 0;
  uint32_t count = 0;

  __device__ uint32_t row(uint32_t i) const { return rows == nullptr ? first : rows[i]; }
};
__device__ RowsAtPlace rows_at(const PlaceRows& all, uint32_t place) {
  if (place >= all.places) return {nullptr, static_cast<uint32_t>(all.graph_rows + place - all.places), 1};
  if (all.graph_rows == all.places) return {all.rows + place, 0, 1};  // each has one: offsets are not waited for
  const uint32_t first = all.offsets[place];
  return {all.rows + first, 0, all.offsets[place + 1] - first};
}
__device__ bool row_is_kept(const uint64_t* bits, uint32_t row) {
  return bits == nullptr || (bits[row / 64] >> (row % 64) & 1) != 0;
}
// How many of them are kept.
__device__ int kept_at(const RowsAtPlace& rows, const uint64_t* bits) {
  if (bits == nullptr) return static_cast<int>(rows.count);
  int kept = 0;
  for (uint32_t i = 0; i < rows.count; ++i) kept += row_is_kept(bits, rows.row(i)) ? 1 : 0;
  return kept;
}
// The n-th of the kept ones.
__device__ uint32_t kept_row(const RowsAtPlace& rows, int n, const uint64_t* bits) {
  if (bits == nullptr) return rows.row(static_cast<uint32_t>(n));
  uint32_t i = 0;
  for (; i < rows.count; ++i) {
    if (row_is_kept(bits, rows.row(i)) && n-- == 0) break;
  }
  return rows.row(i);
}

// As load_query() of candidate_key_cuda.hpp, of a query of any dtype.
__device__ double load_any_query(const GraphCompareTask& task, const DeviceRowsView& queries, int64_t query,
                                 double* values) {
  const int64_t cols = task.codec.format.cols;
  widen_query(queries, query, cols, 1.0, values);
  __syncthreads();
  if (task.kind != KeyKind::cosine) return 1;
  double lanes[kRowThreadLanes] = {};
  for (int64_t first = threadIdx.x % kRowThreads * kRowThreadLanes; first < cols; first += kCanonicalLanes) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) lanes[i] = fma(values[first + i], values[first + i], lanes[i]);
  }
  const double square = __shfl_sync(kAllLanes, join_row_threads(lanes, row_threads()), 0);
  const double inverse = canonical_inverse_norm(square);
  __syncthreads();
  for (int64_t col = threadIdx.x; col < cols; col += kCompareThreads) values[col] *= inverse;
  __syncthreads();
  return inverse;
}

template <typename Reader>
__global__ void __launch_bounds__(kCompareThreads)
    graph_compare_kernel(const __grid_constant__ GraphCompareTask task, const __grid_constant__ InlineQueries given,
                         int room) {
  extern __shared__ __align__(16) double compare_memory[];
  __shared__ int ends[kPlacesAtOnce];             // of the rows at each place
  __shared__ uint32_t first_rows[kPlacesAtOnce];  // at each place
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t query = blockIdx.x;
  double* const values = compare_memory;
  auto* const list = reinterpret_cast<uint64_t*>(values + padded_cols(task.codec.format.cols));
  const CodeKeys keys{task.codec, task.kind};
  const bool known = task.found_keys != nullptr;
  const double inverse_q = known ? 1 : load_any_query(task, given.rows(task.queries), query, values);
  ptx::wait_for_kernel_before();  // the walks
  const Reader reader(task.codec, task.vectors);
  const auto k = static_cast<int>(task.k);
  const int64_t count = task.found_count[query];
  const auto places = static_cast<int>(count < task.most ? count : task.most);
  const uint32_t* const found = task.found + query * task.most;
  int have = 0;
  int64_t taken = 0;
  for (int first = 0; first < places && taken < task.candidates; first += kPlacesAtOnce) {
    // Every warp counts the rows of these places, up to the last that is wanted.
    int total = 0;
    bool lone = true;  // each place has one row
    int mine_ends[kPlacesAtOnce / 32];
    uint32_t mine_rows[kPlacesAtOnce / 32];
    KITH_UNROLL
    for (int part = 0; part < kPlacesAtOnce / 32; ++part) {
      const int mine = first + part * 32 + lane_index();
      const RowsAtPlace rows = mine < places ? rows_at(task.rows, found[mine]) : RowsAtPlace{};
      const int there = kept_at(rows, task.kept_bits);
      mine_rows[part] = there > 0 ? kept_row(rows, 0, task.kept_bits) : 0;
      const int before = warp_inclusive(there) - there;
      const int wanted = taken + total + before < task.candidates ? there : 0;
      const int end = total + warp_inclusive(wanted);
      lone &= wanted <= 1;
      mine_ends[part] = end;
      total = __shfl_sync(kAllLanes, end, 31);
    }
    lone = __all_sync(kAllLanes, lone);
    __syncthreads();
    KITH_UNROLL
    for (int part = 0; part < kPlacesAtOnce / 32 && thread < 32; ++part) {
      ends[part * 32 + thread] = mine_ends[part];
      first_rows[part * 32 + thread] = mine_rows[part];
    }
    __syncthreads();
    for (int start = 0; start < total;) {
      if (have == room) {
        sort_in_place(list, have);
        __syncthreads();
        have = k;
      }
      const int some = min(total - start, room - have);
      for (int i = thread / kRowThreads; i < some; i += kCompareRows) {
        int at = start + i;  // of these places
        uint32_t row = lone ? first_rows[at] : 0;
        if (!lone) {
          at = 0;
          while (ends[at] <= start + i) ++at;
          const RowsAtPlace rows = rows_at(task.rows, found[first + at]);
          row = kept_row(rows, start + i - (at == 0 ? 0 : ends[at - 1]), task.kept_bits);
        }
        const uint32_t key =
            known
                ? ordered_key_of_square(task.kind, task.found_keys[query * task.most + first + at])
                : ordered_key(code_key(keys, reader, values, inverse_q, task.vectors + row * task.code_bytes, nullptr));
        if (thread % kRowThreads == 0) list[have + i] = pack_neighbor(key, row);
      }
      start += some;
      have += some;
      __syncthreads();
    }
    taken += total;
  }
  __syncthreads();
  const auto write = [&](int i, uint64_t neighbor) {
    task.ids[query * k + i] = task.exit.id(neighbor);
    task.distances[query * k + i] = task.exit.distance(neighbor);
  };
  if (have <= kRankedAtOnce) {
    // Rows are different: each counts those before it, sooner than a sort whose steps wait for each other.
    for (int i = thread; i < have; i += kCompareThreads) {
      const uint64_t neighbor = list[i];
      int rank = 0;
#pragma unroll 8
      for (int j = 0; j < have; ++j) rank += list[j] < neighbor ? 1 : 0;
      if (rank < k) write(rank, neighbor);
    }
  } else {
    sort_in_place(list, have);
    __syncthreads();
    for (int i = thread; i < min(k, have); i += kCompareThreads) write(i, list[i]);
  }
  for (int i = have + thread; i < k; i += kCompareThreads) write(i, kPadding);
  if (thread != 0) return;
  AfterWalk then = after_walk(count, task.fewest);
  if (then == AfterWalk::done && have < task.fewest_rows) then = AfterWalk::wider;
  task.failed[query] = static_cast<uint8_t>(then);
  if (query != 0) return;
  *task.report = *task.bad_query;
  *task.bad_query = 0xFFFFFFFFU;
}

}  // namespace

void launch_graph_compare(const GraphCompareTask& task, const InlineQueries& given, cudaStream_t stream) {
  const int64_t bytes = compare_bytes(task.codec.format.cols, task.candidates, task.k);
  const auto room = static_cast<int>(compare_room(task.candidates, task.k));
  const auto launch_with = [&](auto* kernel) {
    allow_all_shared_memory(kernel);
    launch(kernel, Grid::of(task.queries.count, kCompareThreads).with_shared(bytes).chained(), stream, task, given,
           room);
  };
  const CodeFormat& format = task.codec.format;
  if (format.stores_values() && size_of(format.dtype) == 1 && format.cols % 4 == 0) {
    if (format.dtype == DType::u8) return launch_with(graph_compare_kernel<BytesReader<uint8_t>>);
    return launch_with(graph_compare_kernel<BytesReader<int8_t>>);
  }
  visit_reader(format, [&](auto tag) { launch_with(graph_compare_kernel<typename decltype(tag)::type>); });
}

}  // namespace kith
