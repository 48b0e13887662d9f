#include "kernels/matrix/stream_product_cuda.hpp"

#include <kith/error.hpp>

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

#include <algorithm>

namespace kith {
namespace {

constexpr int kTileRows = 16;  // of a warp
constexpr int kMostWarps = 12;
constexpr int kLeastWarps = 4;
constexpr int kStages = 4;  // chunks of the queries in shared memory
constexpr int kChunkCols = kChunkBytes / 2;
constexpr int kChunkPairs = kChunkCols / 8;  // of neighbouring columns, that a lane has of a row's chunk
constexpr int kQueryTiles = static_cast<int>(kStreamMostQueries) / 8;
static_assert(kStreamMostQueries == kOperandTile);

template <typename T>
struct alignas(2 * sizeof(T)) Two {
  T values[2];
};

// Lane 4 g + t reads, of rows g and g + 8 of a tile, columns 8 i + 2 t and 8 i + 2 t + 1 of a chunk.
template <typename T>
struct RowChunk {
  Two<T> pairs[2][kChunkPairs];

  __device__ void load(const T* const (&rows)[2], int64_t first, int64_t cols, bool aligned) {
    KITH_UNROLL
    for (int row = 0; row < 2; ++row) {
      KITH_UNROLL
      for (int i = 0; i < kChunkPairs; ++i) {
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
__device__ void add_sums(const HalfSums& more, HalfSums& sums) {
  sums.squares += more.squares;
  sums.residual_squares += more.residual_squares;
}

// Of the four lanes that share a row, in all of them.
__device__ void join_sums(HalfSums& sums) {
  KITH_UNROLL
  for (int apart = 1; apart <= 2; apart *= 2) {
    sums.squares += __shfl_xor_sync(kAllLanes, sums.squares, apart);
    sums.residual_squares += __shfl_xor_sync(kAllLanes, sums.residual_squares, apart);
  }
}

// Whether all values of a row whose halves are not are finite themselves, by one thread: rows are searched no further
// where they are not.
template <typename T>
__device__ bool is_finite(const T* values, int64_t cols) {
  for (int64_t col = 0; col < cols; ++col) {
    const auto value = static_cast<float>(values[col]);
    if (value - value != 0.0f) return false;
  }
  return true;
}

// The chunk of all queries, swizzled as it lies.
__device__ void fetch_queries(const std::byte* queries, int64_t chunk, std::byte* to) {
  const std::byte* const from = queries + chunk * kTileChunkBytes;
  const uint32_t shared = ptx::shared_address(to);
  for (unsigned at = threadIdx.x * 16; at < kTileChunkBytes; at += blockDim.x * 16) {
    ptx::copy_async_16(shared + at, from + at);
  }
}

// A chunk of a warp's rows times that of all queries.
__device__ void multiply_chunk(const uint32_t (&a)[kChunkSteps][4], const std::byte* queries,
                               float (&products)[kQueryTiles][4], int query_tiles) {
  const int lane = lane_index();
  const int query = lane / 16 * 8 + lane % 8;  // of two tiles of eight
  const int half = lane / 8 % 2;               // of a step's columns
  const uint32_t start = ptx::shared_address(queries);
  KITH_UNROLL
  for (int step = 0; step < kChunkSteps; ++step) {
    const auto unit = static_cast<uint32_t>((2 * step + half) ^ (lane % 8));
    KITH_UNROLL
    for (int pair = 0; pair < kQueryTiles / 2; ++pair) {
      if (2 * pair >= query_tiles) break;
      uint32_t b[4];
      ptx::load_matrices(b, start + static_cast<uint32_t>(16 * pair + query) * kChunkBytes + unit * 16);
      ptx::multiply_add(products[2 * pair], a[step], b);
      ptx::multiply_add(products[2 * pair + 1], a[step], b + 2);
    }
  }
}

template <Form kForm, typename T>
__global__ void __launch_bounds__(32 * kMostWarps, 1) stream_product_kernel(StreamProductTask task) {
  extern __shared__ __align__(128) std::byte stages[];
  const DeviceRowsView& rows = task.base.rows;
  const int64_t cols = task.base.cols;
  const auto chunks = static_cast<int>(operand_chunks(cols, 2));
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int lane = lane_index();
  const int query_tiles = (static_cast<int>(task.query_count) + 7) / 8;
  const bool aligned = is_aligned(rows.data, static_cast<int>(2 * sizeof(T))) && rows.stride % 2 == 0;
  BaseFacts* const facts = task.base.base_facts;
  const float scale = operand_scale(facts->sample_largest);
  const int64_t tiles = (rows.count + kTileRows - 1) / kTileRows;
  OperandFacts largest = {0, 0};
  bool unsure = false;

  for (int64_t first = static_cast<int64_t>(blockIdx.x) * warps; first < tiles;
       first += static_cast<int64_t>(gridDim.x) * warps) {
    int64_t row[2];
    bool real[2];
    const T* values[2];
    double inverse_norm[2] = {1, 1};
    KITH_UNROLL
    for (int i = 0; i < 2; ++i) {
      row[i] = (first + threadIdx.x / 32) * kTileRows + lane / 4 + 8 * i;
      real[i] = row[i] < rows.count;
      const int64_t there = real[i] ? row[i] : rows.count - 1;  // past the last row it is read again
      values[i] = rows.row<T>(there);
      if constexpr (kForm == Form::unit) inverse_norm[i] = rows.inverse_norms[there];
    }
    float products[kQueryTiles][4] = {};
    HalfSums sums[2];
    RowChunk<T> now;
    now.load(values, 0, cols, aligned);
    __syncthreads();  // all have read what the stages had
    for (int stage = 0; stage < kStages - 1; ++stage) {
      if (stage < chunks) fetch_queries(task.queries, stage, stages + stage * kTileChunkBytes);
      ptx::copy_async_commit();
    }
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int64_t start = int64_t{chunk} * kChunkCols;
      uint32_t a[kChunkSteps][4];
      HalfSums some[2];
      KITH_UNROLL
      for (int pair = 0; pair < kChunkPairs; ++pair) {
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
      if (chunk + 1 < chunks) now.load(values, start + kChunkCols, cols, aligned);
      ptx::copy_async_wait<kStages - 2>();
      __syncthreads();
      const int ahead = chunk + kStages - 1;
      if (ahead < chunks) fetch_queries(task.queries, ahead, stages + ahead % kStages * kTileChunkBytes);
      ptx::copy_async_commit();
      multiply_chunk(a, stages + chunk % kStages * kTileChunkBytes, products, query_tiles);
    }

    KITH_UNROLL
    for (int i = 0; i < 2; ++i) {
      join_sums(sums[i]);
      if (!real[i]) continue;
      const OperandFacts mine = facts_of(sums[i], cols);
      largest = {fmaxf(largest.norm, mine.norm), fmaxf(largest.residual, mine.residual)};
      unsure = unsure || !sums[i].inside();
      if (!sums[i].inside() && task.first_bad != nullptr && lane % 4 == 0 && !is_finite(values[i], cols)) {
        atomicMin(task.first_bad, static_cast<uint32_t>(row[i]));
      }
      float term = kForm == Form::plain ? 0.0f : 0.5f * sums[i].squares;
      // A zero vector is at distance 1 of every other: as far as one at a right angle.
      if (kForm == Form::unit && sums[i].squares == 0.0f) term = 0.5f * scale * scale;
      KITH_UNROLL
      for (int tile = 0; tile < kQueryTiles; ++tile) {
        KITH_UNROLL
        for (int j = 0; j < 2; ++j) {
          const int query = 8 * tile + lane % 4 * 2 + j;
          if (query < task.query_count) task.values[query * task.stride + row[i]] = term + products[tile][2 * i + j];
        }
      }
    }
  }
  largest = {warp_largest(largest.norm), warp_largest(largest.residual)};
  const bool any_unsure = __any_sync(kAllLanes, unsure);
  if (lane != 0) return;
  if (kForm == Form::unit) largest.norm = fmaxf(largest.norm, scale);
  raise(&facts->rows.norm, largest.norm);
  raise(&facts->rows.residual, largest.residual);
  if (any_unsure) atomicOr(&facts->unsure, 1u);
}

template <typename T>
auto kernel_for(Form form) {
  return form == Form::plain     ? stream_product_kernel<Form::plain, T>
         : form == Form::centred ? stream_product_kernel<Form::centred, T>
                                 : stream_product_kernel<Form::unit, T>;
}

}  // namespace

void launch_stream_product(const StreamProductTask& task, cudaStream_t stream) {
  if (task.base.rows.count == 0 || task.query_count == 0) return;
  const Form form = form_of(task.base.kind);
  if (!can_stream(task.base.rows.dtype)) throw InvalidArgument("rows of bytes are not multiplied as they are stored");
  const auto kernel = task.base.rows.dtype == DType::f32   ? kernel_for<float>(form)
                      : task.base.rows.dtype == DType::f16 ? kernel_for<Half>(form)
                                                           : kernel_for<BFloat16>(form);
  allow_all_shared_memory(kernel);
  // One block for each multiprocessor, with as many warps as share its rows evenly.
  const int64_t tiles = divide_up(task.base.rows.count, kTileRows);
  const int64_t passes = divide_up(tiles, int64_t{kMostWarps} * task.multiprocessors);
  const int64_t warps = std::clamp<int64_t>(divide_up(tiles, passes * task.multiprocessors), kLeastWarps, kMostWarps);
  const Grid grid = Grid::of(std::min<int64_t>(divide_up(tiles, warps), task.multiprocessors), 32 * warps);
  launch(kernel, grid.with_shared(kStages * kTileChunkBytes), stream, task);
}

}  // namespace kith
