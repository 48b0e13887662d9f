// The scan of a list of additive codes by lookup tables, for few queries: halves of the vectors are many times the
// bytes of their codes.
//
// One kernel makes a query's tables, of its products with all codewords; they are the same for every block. A block of
// the scan then has one query's tables in shared memory, and a thread adds up its vector's entries, from the vector's
// term on. Only for lists without a centre: with one, products of the centre and codewords would be missing.
#include "ivf/scan/scan_lists_task_cuda.hpp"

#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "ivf/scan/lookups_cuda.hpp"
#include "ivf/scan/scan_item_cuda.hpp"
#include "ivf/scan/stored_key_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 4;  // of a multiprocessor
constexpr int64_t kMostBooks = 32;

// A query's tables: the entries, the largest codeword norm of each book, the squared norm of the scaled query.
__device__ inline float* tables_of(const ScanListsTask& task, int64_t query) {
  return task.sum_tables + query * sum_table_floats(task.lists.codec.format);
}

// By what a query is multiplied: both operands of distances have one scale. Whole warps.
__device__ inline float query_scale(const ScanListsTask& task, const float* query) {
  const float scale = operand_scale(*task.prepared.largest);
  if (has_differences(task.lists.kind)) return scale;
  return static_cast<float>(query_unit(task.lists, task.prepared, query) / scale);  // powers of two
}

constexpr int kTableThreads = 1024;

// A block for each book and query, a warp for a codeword at a time.
__global__ void __launch_bounds__(kTableThreads) sum_tables_kernel(const __grid_constant__ ScanListsTask task) {
  constexpr int kWarps = kTableThreads / 32;
  constexpr int kEach = 256 / kWarps;
  __shared__ float longest[kWarps];
  const CodecView& codec = task.lists.codec;
  const auto cols = static_cast<int>(codec.format.cols);
  const int64_t book = blockIdx.x;
  const int64_t query = blockIdx.y;
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  const float* const values = task.queries + query * task.query_stride;
  const float* const words = codec.codewords + (book * 256 + warp * kEach) * cols;
  const float scale = operand_scale(*task.prepared.largest);
  const float own_scale = query_scale(task, values);
  float products[kEach] = {};
  float squares[kEach] = {};
  for (int col = lane; col < cols; col += 32) {
    const float value = values[col] * own_scale;
    KITH_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const float word = words[i * cols + col];
      products[i] = fmaf(value, word, products[i]);
      squares[i] = fmaf(word, word, squares[i]);
    }
  }
  float* const tables = tables_of(task, query);
  float square = 0;
  KITH_UNROLL
  for (int i = 0; i < kEach; ++i) {
    const float product = warp_sum(products[i]);
    if (lane == 0) tables[book * 256 + warp * kEach + i] = -product * scale;
    square = fmaxf(square, warp_sum(squares[i]));
  }
  if (lane == 0) longest[warp] = square;
  __syncthreads();
  if (warp != 0) return;
  if (book == 0) {
    double sum = 0;
    for (int col = lane; col < cols; col += 32) {
      const double value = static_cast<double>(values[col]) * own_scale;
      sum = fma(value, value, sum);
    }
    sum = warp_sum(sum);
    if (lane == 0) tables[codec.format.parts * 257] = static_cast<float>(sum);
  }
  square = warp_largest(longest[lane]);
  if (lane == 0) tables[codec.format.parts * 256 + book] = sqrtf(square) * scale * (1 + 0x1p-10f);
}

// By one thread.
template <bool kFirst>
__device__ LookupPair bound_query(const ScanListsTask& task, const ScanItem& item, const ProbePair& pair) {
  const CodeFormat& format = task.lists.codec.format;
  const float* const books = tables_of(task, pair.query) + format.parts * 256;
  double longest = 0;
  for (int64_t book = 0; book < format.parts; ++book) longest += books[book];
  const double square = books[format.parts];
  const PairBounds bounds =
      sum_bounds(task.lists.key(), format.cols, format.parts, task.prepared.maxima[item.list], {square, longest});
  return publish_bounds<kFirst>(task, pair.query, pair.slot, bounds);
}

template <bool kFirst>
__device__ inline void scan_rows(const ScanListsTask& task, const ScanItem& item, uint32_t query,
                                 const LookupPair& pair, const float* tables, int64_t code_bytes) {
  const auto books = static_cast<int>(task.lists.codec.format.parts);
  const int64_t list_start = task.lists.offsets[item.list];
  const bool whole = code_bytes % 8 == 0 && reinterpret_cast<uintptr_t>(task.lists.codes) % 8 == 0;
  for (auto i = static_cast<int>(threadIdx.x); i < item.rows; i += kThreads) {
    const uint32_t number = item.first_row + static_cast<uint32_t>(i);
    const int64_t position = list_start + (kFirst ? item.row_at(number) : number);
    const uint8_t* const code = task.lists.codes + position * code_bytes;
    float value = task.prepared.terms == nullptr ? 0.0f : __ldg(task.prepared.terms + position);
    if (whole) {
      for (int first = 0; first < books; first += 8) {
        const uint2 numbers = __ldg(vectors<uint2>(code + first));
        KITH_UNROLL
        for (int j = 0; j < 8; ++j) {
          const uint32_t number_of_word = (j < 4 ? numbers.x : numbers.y) >> (8 * (j % 4)) & 255u;
          if (first + j < books) value += tables[(first + j) * 256 + static_cast<int>(number_of_word)];
        }
      }
    } else {
#pragma unroll 8
      for (int book = 0; book < books; ++book) value += tables[book * 256 + __ldg(code + book)];
    }
    give_value<kFirst>(task, pair, query, item.list, number, position, value);
  }
}

template <bool kFirst>
__global__ void __launch_bounds__(kThreads, kBlocks)
    scan_sums_kernel(const __grid_constant__ ScanListsTask task, int64_t code_bytes) {
  extern __shared__ __align__(16) float tables[];
  __shared__ LookupPair shared;
  __shared__ ScanItem next;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto entries = static_cast<int>(task.lists.codec.format.parts) * 256;
  ptx::wait_for_kernel_before();
  const uint32_t all_items = task.items[task.lists.lists];
  for (;;) {
    __syncthreads();
    if (thread < 32) {
      const ScanItem taken = take_item<kFirst>(task, all_items);
      if (thread == 0) next = taken;
    }
    __syncthreads();
    const ScanItem item = next;
    if (item.queries == 0) return;
    for (int i = 0; i < item.queries; ++i) {
      const ProbePair pair = task.pairs[item.first_pair + static_cast<uint32_t>(i)];
      __syncthreads();  // the query before is done
      const float* const from = tables_of(task, pair.query);
      for (int at = thread; at < entries; at += kThreads) tables[at] = from[at];
      if (thread == kThreads - 1) shared = bound_query<kFirst>(task, item, pair);
      __syncthreads();
      if (!kFirst && !(shared.limit == shared.limit)) continue;
      scan_rows<kFirst>(task, item, pair.query, shared, tables, code_bytes);
    }
  }
}

template <bool kFirst>
void launch_pass(const ScanListsTask& task, cudaStream_t stream) {
  const CodeFormat& format = task.lists.codec.format;
  const auto kernel = scan_sums_kernel<kFirst>;
  allow_all_shared_memory(kernel);
  launch(kernel, Grid::of(kBlocks * task.multiprocessors, kThreads).with_shared(format.parts * 256 * 4).chained(),
         stream, task, format.bytes());
}

}  // namespace

bool suits_sums(const CodeFormat& format) {
  return format.adds_codewords() && format.bits == 8 && format.parts <= kMostBooks;
}

void launch_sum_tables(const ScanListsTask& task, int64_t queries, cudaStream_t stream) {
  launch(sum_tables_kernel, Grid::of(task.lists.codec.format.parts, queries, kTableThreads), stream, task);
}

void launch_scan_sums(const ScanListsTask& task, bool first, cudaStream_t stream) {
  if (first) return launch_pass<true>(task, stream);
  launch_pass<false>(task, stream);
}

}  // namespace kith
