// Operands of bytes: eight lanes for each row, sixteen bytes a lane at a time.
#include "cuda/launch.hpp"
#include "kernels/matrix/operand_blocks_cuda.hpp"
#include "kernels/matrix/operands_cuda.hpp"

#include <algorithm>
#include <type_traits>

namespace kith {
namespace {

struct ByteSums {
  int32_t squares = 0;
  int32_t values = 0;
};

constexpr int kByteLanes = 8;  // that share a row: 16 bytes each at a time
constexpr int kByteRows = kOperandThreads / kByteLanes;

// Unsigned bytes are shifted to signed ones by 128, which changes no difference. Four bytes.
template <typename T>
__device__ uint32_t signed_word(const T* row, int64_t first, int64_t cols) {
  uint32_t word = 0;
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (first + i >= cols) continue;
    const int value = static_cast<int>(row[first + i]) - (std::is_same_v<T, uint8_t> ? 128 : 0);
    word |= static_cast<uint32_t>(value & 0xFF) << (8 * i);
  }
  return word;
}

template <bool kInverted, typename T>
__device__ ByteSums convert_bytes(const DeviceRowsView& rows, int64_t cols, int64_t row, bool aligned,
                                  std::byte* operands) {
  constexpr uint32_t kShift = std::is_same_v<T, uint8_t> ? 0x80808080u : 0u;
  const int lane = static_cast<int>(threadIdx.x) % kByteLanes;
  const int64_t chunks = operand_chunks(cols, 1);
  ByteSums sums;
  const bool real = row < rows.count;
  const T* const from = real ? rows.row<T>(row) : nullptr;
  for (int64_t first = 16 * lane; first < chunks * kChunkBytes; first += kChunkBytes) {
    uint4 unit = {0, 0, 0, 0};
    if (real && aligned && first + 16 <= cols) {
      unit = load_vector<uint4>(from + first);
      unit = {unit.x ^ kShift, unit.y ^ kShift, unit.z ^ kShift, unit.w ^ kShift};
    } else if (real) {
      unit = {signed_word(from, first, cols), signed_word(from, first + 4, cols), signed_word(from, first + 8, cols),
              signed_word(from, first + 12, cols)};
    }
    for (const uint32_t word : {unit.x, unit.y, unit.z, unit.w}) {
      sums.squares = __dp4a(static_cast<int>(word), static_cast<int>(word), sums.squares);
      sums.values = __dp4a(static_cast<int>(word), 0x01010101, sums.values);
    }
    if (kInverted) unit = {~unit.x, ~unit.y, ~unit.z, ~unit.w};
    store_vector(operands + operand_offset(row, first, chunks), unit);
  }
  KITH_UNROLL
  for (int apart = kByteLanes / 2; apart > 0; apart /= 2) {
    sums.squares += __shfl_xor_sync(kWholeWarp, sums.squares, apart);
    sums.values += __shfl_xor_sync(kWholeWarp, sums.values, apart);
  }
  return sums;
}

__device__ bool units_aligned(const DeviceRowsView& rows) {
  return is_aligned(rows.data, 16) && rows.stride % 16 == 0;
}

// The rows of the tiles are a multiple of kByteRows: no warp has lanes without one.
static_assert(kOperandTile % kByteRows == 0);

template <typename T>
__global__ void __launch_bounds__(kOperandThreads)
    base_bytes_kernel(DeviceRowsView rows, int64_t cols, int64_t tile_rows, bool product, BaseFacts* facts,
                      std::byte* operands, int32_t* terms) {
  constexpr int kShift = std::is_same_v<T, uint8_t> ? 128 : 0;
  const bool aligned = units_aligned(rows);
  int32_t largest = 0;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kByteRows;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kByteRows + threadIdx.x / kByteLanes; row < tile_rows;
       row += step) {
    const ByteSums sums = convert_bytes<false, T>(rows, cols, row, aligned, operands);
    largest = max(largest, sums.squares);
    if (threadIdx.x % kByteLanes != 0) continue;
    // An inverted query q gives (-q - 1) x: the sum of x makes up for it. What the shift adds to a product is a
    // multiple of that sum and, for the query alone, key_offset.
    const int32_t term = product ? (1 - kShift) * sums.values : sums.squares / 2 + sums.values;
    terms[row] = row < rows.count ? term : kNoByteTerm;
  }
  __shared__ int32_t warps[kOperandWarps];
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) largest = max(largest, __shfl_xor_sync(kWholeWarp, largest, apart));
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = largest;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kOperandWarps; ++i) largest = max(largest, warps[i]);
  raise(&facts->rows.norm, sqrtf(static_cast<float>(largest)) * 1.0001f);
}

template <typename T>
__global__ void __launch_bounds__(kOperandThreads)
    query_bytes_kernel(DeviceRowsView rows, int64_t cols, int64_t tile_rows, bool product, std::byte* operands,
                       QueryFacts* facts) {
  constexpr int kShift = std::is_same_v<T, uint8_t> ? 128 : 0;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kByteRows + threadIdx.x / kByteLanes;
  if (row >= tile_rows) return;
  const ByteSums sums = convert_bytes<true, T>(rows, cols, row, units_aligned(rows), operands);
  if (threadIdx.x % kByteLanes != 0 || row >= rows.count) return;
  const double shifted =
      static_cast<double>(kShift) * sums.values + static_cast<double>(kShift) * kShift * static_cast<double>(cols);
  facts[row] = {{sqrtf(static_cast<float>(sums.squares)) * 1.0001f, 0.0f},
                1.0f,
                0u,
                static_cast<double>(sums.squares),
                product ? -shifted : 0.0};
}

template <typename Use>
void with_bytes(DType dtype, const Use& use) {
  if (dtype == DType::u8) return use(uint8_t{});
  use(int8_t{});
}

}  // namespace

void launch_byte_base(const OperandTask& task, const BaseOperands& base, cudaStream_t stream) {
  const int64_t tile_rows = operand_tiles(task.rows.count) * kOperandTile;
  const int64_t blocks = std::min<int64_t>(divide_up(tile_rows, kByteRows), kOperandMostBlocks);
  with_bytes(task.rows.dtype, [&](auto value) {
    launch(base_bytes_kernel<decltype(value)>, Grid::of(blocks, kOperandThreads), stream, task.rows, task.cols,
           tile_rows, task.kind == KeyKind::inner_product, task.base_facts, task.operands,
           static_cast<int32_t*>(base.terms));
  });
}

void launch_byte_queries(const OperandTask& task, const QueryOperands& queries, cudaStream_t stream) {
  const int64_t tile_rows = operand_tiles(task.rows.count) * kOperandTile;
  const int64_t blocks = divide_up(tile_rows, kByteRows);
  with_bytes(task.rows.dtype, [&](auto value) {
    launch(query_bytes_kernel<decltype(value)>, Grid::of(blocks, kOperandThreads), stream, task.rows, task.cols,
           tile_rows, task.kind == KeyKind::inner_product, task.operands, queries.facts);
  });
}

}  // namespace kith
