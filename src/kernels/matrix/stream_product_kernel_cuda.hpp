// The kernel of stream_product_cuda.hpp, whoever multiplies.
#pragma once

#include "core/divide.hpp"
#include "core/half.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/matrix/round_half_cuda.hpp"
#include "kernels/matrix/stream_product_cuda.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kith {

inline constexpr int kStreamTileRows = 16;  // of a warp
inline constexpr int kStreamMostWarps = 12;
inline constexpr int kStreamLeastWarps = 4;
inline constexpr int kStreamStages = 4;  // chunks of the queries in shared memory
inline constexpr int kStreamChunkCols = kChunkBytes / 2;
inline constexpr int kStreamChunkPairs = kStreamChunkCols / 8;  // of neighbouring columns, that a lane has of a row's chunk
inline constexpr int kStreamQueryTiles = static_cast<int>(kStreamMostQueries) / 8;
static_assert(kStreamMostQueries == kOperandTile);

template <typename T>
struct alignas(2 * sizeof(T)) Two {
  T values[2];
};

// Lane 4 g + t reads, of rows g and g + 8 of a tile, columns 8 i + 2 t and 8 i + 2 t + 1 of a chunk.
template <typename T>
struct RowChunk {
  Two<T> pairs[2][kStreamChunkPairs];

  __device__ void load(const T* const (&rows)[2], int64_t first, int64_t cols, bool aligned) {
    KITH_UNROLL
    for (int row = 0; row < 2; ++row) {
      KITH_UNROLL
      for (int i = 0; i < kStreamChunkPairs; ++i) {
        const int64_t col = first + 8 * i + 2 * (threadIdx.x % 4);
        if (aligned && col + 2 <= cols) {
          pairs[row][i] = load_vector<Two<T>>(rows[row] + col);
        } else {
          pairs[row][i].values[0] = col < cols ? rows[row][col] : T{};
          pairs[row][i].values[1] = col + 1 < cols ? rows[row][col + 1] : T{};
        }
      }
    }
  }
};

// Sums of sums: no value passes through more additions than a bound for whole warps allows (norm_loss).
__device__ inline void add_sums(const HalfSums& more, HalfSums& sums) {
  sums.squares += more.squares;
  sums.residual_squares += more.residual_squares;
}

// Adds up the sums of the four lanes that share a row, in all of them.
__device__ inline void join_sums(HalfSums& sums) {
  KITH_UNROLL
  for (int apart = 1; apart <= 2; apart *= 2) {
    sums.squares += __shfl_xor_sync(kAllLanes, sums.squares, apart);
    sums.residual_squares += __shfl_xor_sync(kAllLanes, sums.residual_squares, apart);
  }
}

// Whether all values of a row whose halves are not are finite themselves, by one thread: rows are searched no further
// where they are not.
template <typename T>
__device__ inline bool is_finite(const T* values, int64_t cols) {
  for (int64_t col = 0; col < cols; ++col) {
    const auto value = static_cast<float>(values[col]);
    if (value - value != 0.0f) return false;
  }
  return true;
}

// The chunk of all queries, swizzled as it is stored.
__device__ inline void fetch_queries(const std::byte* queries, int64_t chunk, std::byte* to) {
  const std::byte* const from = queries + chunk * kTileChunkBytes;
  const uint32_t shared = ptx::shared_address(to);
  for (unsigned at = threadIdx.x * 16; at < kTileChunkBytes; at += blockDim.x * 16) {
    ptx::copy_async_16(shared + at, from + at);
  }
}

// Asks for the lines of a warp's rows some chunks ahead of those that are read, from the first one on.
template <typename T, bool kFetches>
class LinesAhead {
 public:
  __device__ LinesAhead(const DeviceRowsView& rows, int64_t first, int64_t cols) : cols_(cols) {
    const int64_t row = first + lane_index() / 2;
    values_ = rows.row<T>(row < rows.count ? row : rows.count - 1) + lane_index() % 2 * kLineCols;
    for (int chunk = 1; chunk < kChunks; ++chunk) fetch(int64_t{chunk} * kStreamChunkCols);
  }
  // Once the chunk that begins with a column is being read.
  __device__ void advance(int64_t col) const { fetch(col + int64_t{kChunks - 1} * kStreamChunkCols); }

 private:
  static constexpr int kChunks = 4;
  static constexpr int kLineCols = 128 / static_cast<int>(sizeof(T));

  __device__ void fetch(int64_t col) const {
    const int beyond = lane_index() % 2 * kLineCols;  // a chunk of halves is one line
    if (kFetches && beyond < kStreamChunkCols && col + beyond < cols_) ptx::prefetch(values_ + col);
  }

  const T* values_;
  int64_t cols_;
};

// `Products` are the sums of a warp's rows with all queries, and who multiplies:
//
//   kAligned        what the queries' chunks are aligned to in shared memory
//   kFetchesAhead   rows are asked for some chunks before they are read
//   sums[4 t + 2 i + j]   of row lane / 4 + 8 i with query 8 t + 2 (lane % 4) + j
//   publish()       after a thread's copies have come, before the barrier
//   multiply(a, queries, query_tiles)   a chunk of the rows times that of all queries
template <typename Products, Form kForm, typename T>
__global__ void __launch_bounds__(32 * kStreamMostWarps, 1) stream_product_kernel(StreamProductTask task) {
  extern __shared__ __align__(128) std::byte memory[];
  const uint32_t apart = ptx::shared_address(memory) % Products::kAligned;
  std::byte* const stages = memory + (apart == 0 ? 0 : Products::kAligned - apart);
  const DeviceRowsView& rows = task.base.rows;
  const int64_t cols = task.base.cols;
  const auto chunks = static_cast<int>(operand_chunks(cols, 2));
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int lane = lane_index();
  const int query_tiles = (static_cast<int>(task.query_count) + 7) / 8;
  const bool aligned = is_aligned(rows.data, static_cast<int>(2 * sizeof(T))) && rows.stride % 2 == 0;
  BaseBounds* const bounds = task.base.base_bounds;
  const float scale = operand_scale(bounds->sample_largest);
  const int64_t tiles = (rows.count + kStreamTileRows - 1) / kStreamTileRows;
  OperandBounds largest = {0, 0};
  bool unsure = false;

  for (int64_t first = static_cast<int64_t>(blockIdx.x) * warps; first < tiles;
       first += static_cast<int64_t>(gridDim.x) * warps) {
    int64_t row[2];
    bool real[2];
    const T* values[2];
    double inverse_norm[2] = {1, 1};
    KITH_UNROLL
    for (int i = 0; i < 2; ++i) {
      row[i] = (first + threadIdx.x / 32) * kStreamTileRows + lane / 4 + 8 * i;
      real[i] = row[i] < rows.count;
      const int64_t there = real[i] ? row[i] : rows.count - 1;  // past the last row it is read again
      values[i] = rows.row<T>(there);
      if constexpr (kForm == Form::unit) inverse_norm[i] = rows.inverse_norms[there];
    }
    Products products;
    HalfSums sums[2];
    RowChunk<T> now;
    const int64_t first_row = (first + threadIdx.x / 32) * kStreamTileRows;
    const LinesAhead<T, Products::kFetchesAhead> coming(rows, first_row, cols);
    now.load(values, 0, cols, aligned);
    __syncthreads();  // all have read what the stages had
    for (int stage = 0; stage < kStreamStages - 1; ++stage) {
      if (stage < chunks) fetch_queries(task.queries, stage, stages + stage * kTileChunkBytes);
      ptx::copy_async_commit();
    }
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int64_t start = int64_t{chunk} * kStreamChunkCols;
      uint32_t a[kChunkSteps][4];
      HalfSums some[2];
      KITH_UNROLL
      for (int pair = 0; pair < kStreamChunkPairs; ++pair) {
        const int64_t col = start + 8 * pair + 2 * (lane % 4);
        float centre[2] = {0, 0};
        if constexpr (kForm == Form::centred) {
          centre[0] = col < cols ? task.base.centre[col] : 0.0f;
          centre[1] = col + 1 < cols ? task.base.centre[col + 1] : 0.0f;
        }
        KITH_UNROLL
        for (int i = 0; i < 2; ++i) {
          const auto value = [&](int j) {
            return formed<kForm>(static_cast<float>(now.pairs[i][pair].values[j]), centre[j], inverse_norm[i], scale);
          };
          a[pair / 2][pair % 2 * 2 + i] = round_halves<false>(value(0), value(1), some[i]);
        }
      }
      KITH_UNROLL
      for (int i = 0; i < 2; ++i) add_sums(some[i], sums[i]);
      if (chunk + 1 < chunks) now.load(values, start + kStreamChunkCols, cols, aligned);
      coming.advance(start + kStreamChunkCols);
      ptx::copy_async_wait<kStreamStages - 2>();
      products.publish();
      __syncthreads();
      const int ahead = chunk + kStreamStages - 1;
      if (ahead < chunks) fetch_queries(task.queries, ahead, stages + ahead % kStreamStages * kTileChunkBytes);
      ptx::copy_async_commit();
      products.multiply(a, stages + chunk % kStreamStages * kTileChunkBytes, query_tiles);
    }

    KITH_UNROLL
    for (int i = 0; i < 2; ++i) {
      join_sums(sums[i]);
      if (!real[i]) continue;
      const OperandBounds mine = bounds_of(sums[i], cols);
      largest = {fmaxf(largest.norm, mine.norm), fmaxf(largest.residual, mine.residual)};
      unsure = unsure || !sums[i].inside();
      if (!sums[i].inside() && task.first_bad != nullptr && lane % 4 == 0 && !is_finite(values[i], cols)) {
        atomicMin(task.first_bad, static_cast<uint32_t>(row[i]));
      }
      float term = kForm == Form::plain ? 0.0f : 0.5f * sums[i].squares;
      // A zero vector is at distance 1 of every other: as far as one at a right angle.
      if (kForm == Form::unit && sums[i].squares == 0.0f) term = 0.5f * scale * scale;
      KITH_UNROLL
      for (int tile = 0; tile < kStreamQueryTiles; ++tile) {
        KITH_UNROLL
        for (int j = 0; j < 2; ++j) {
          const int query = 8 * tile + lane % 4 * 2 + j;
          if (query < task.query_count) task.values[query * task.stride + row[i]] = term + products.sums[4 * tile + 2 * i + j];
        }
      }
    }
  }
  largest = {warp_largest(largest.norm), warp_largest(largest.residual)};
  const bool any_unsure = __any_sync(kAllLanes, unsure);
  if (lane != 0) return;
  if (kForm == Form::unit) largest.norm = fmaxf(largest.norm, scale);
  raise(&bounds->rows.norm, largest.norm);
  raise(&bounds->rows.residual, largest.residual);
  if (any_unsure) atomicOr(&bounds->unsure, 1u);
}

// One block for each multiprocessor, with as many warps as share its rows evenly; these come by `group`.
template <typename Products>
void launch_stream_kernel(const StreamProductTask& task, int64_t group, cudaStream_t stream) {
  const Form form = form_of(task.base.kind);
  const auto kernel_of = [&]<typename T>(T) {
    return form == Form::plain     ? stream_product_kernel<Products, Form::plain, T>
           : form == Form::centred ? stream_product_kernel<Products, Form::centred, T>
                                   : stream_product_kernel<Products, Form::unit, T>;
  };
  const auto kernel = task.base.rows.dtype == DType::f32   ? kernel_of(float{})
                      : task.base.rows.dtype == DType::f16 ? kernel_of(Half{})
                                                           : kernel_of(BFloat16{});
  allow_all_shared_memory(kernel);
  const int64_t tiles = divide_up(task.base.rows.count, int64_t{kStreamTileRows});
  const int64_t passes = divide_up(tiles, int64_t{kStreamMostWarps} * task.multiprocessors);
  const int64_t wanted = round_up(divide_up(tiles, passes * task.multiprocessors), group);
  const int64_t warps = std::clamp<int64_t>(wanted, kStreamLeastWarps, kStreamMostWarps);
  const Grid grid = Grid::of(std::min<int64_t>(divide_up(tiles, warps), task.multiprocessors), 32 * warps);
  launch(kernel, grid.with_shared(kStreamStages * kTileChunkBytes + Products::kAligned), stream, task);
}

}  // namespace kith
