// Keys made of products, on the matrix units that multiply doubles: a block computes 64 queries x 64 rows, or 16 x 64
// or 32 x 64 where there are no more queries.
//
// Values are loaded through shared memory in stages of 16 or 32 columns, widened, while the products of the stage
// before are summed; the loading threads also add up the squared norms. (For cosine the products are scaled instead of
// the values, and the norms are known.) Then the products are stored there, and a key is written if product and norms
// make it certain (certain_key.hpp). The few other keys of a tile are computed by half a warp each, as in
// canonical.hpp. If there are many (nearly equal vectors), the tile is marked, and a second kernel, which has enough
// registers, computes all of it that way (distance_tile_cuda.hpp). For vectors close together, a centre among them is
// subtracted if the task has one: then the norms are not much larger than the distances, and the keys are certain.
//
// Cost: one multiply-add of the matrix units per pair and column, 128 per clock on each multiprocessor of an H200: a
// quarter of the canonical kernel's time. 40 KiB of shared memory.
#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/warp.hpp"
#include "kernels/distance/certain_key.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/distance_tile_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 128;
static_assert(kThreads == kTileThreads);
constexpr uint32_t kMost = 128;  // more uncertain pairs than this mark the tile
constexpr int64_t kMostMarkedBlocks = 132 * 8;

// Shape of a tile, and columns per stage. With few queries the reads of the rows dominate, so stages are longer. A warp
// multiplies 16 kQueryTiles queries by 8 kRowTiles rows.
template <int kQueries>
struct Tile {
  static constexpr int kRows = 64;
  static constexpr int kCols = kQueries == 16 ? 32 : 16;
  static constexpr int kQueryTiles = kQueries == 16 ? 1 : 2;
  static constexpr int kRowTiles = kQueries == 64 ? 4 : 2;
  __device__ static int first_query(int warp) { return kQueries == 64 ? warp / 2 * 32 : 0; }
  __device__ static int first_row(int warp, int n) { return (kQueries == 64 ? warp % 2 * 4 + n : warp * 2 + n) * 8; }
};

template <int kQueries>
struct CertainShared {
  static constexpr int kVectors = kQueries + Tile<kQueries>::kRows;  // queries, then rows
  static constexpr int kPitch = Tile<kQueries>::kCols + 2;           // neighbouring rows in other banks
  static_assert(kVectors <= kThreads);

  alignas(16) double values[2][kVectors][kPitch];
  const std::byte* vectors[kVectors];  // padded by repeating the last one
  double scales[kVectors];
  double norms[kVectors];  // squared norms; for inner products the norms
  uint16_t uncertain[kMost];

  // Product of a query and a row of the tile. Reuses the memory of the values.
  __device__ __forceinline__ double* product(int query, int row) {
    constexpr int kApart = Tile<kQueries>::kRows + 8;  // neighbouring queries in other banks
    static_assert(sizeof values >= sizeof(double) * kQueries * kApart);
    return &values[0][0][0] + query * kApart + row;
  }
};

// Stored as a tile's first key to mark the tile: not a valid key.
__device__ __forceinline__ uint32_t tile_mark(const DistanceTask& task) {
  return task.form == KeyForm::ordered ? 1u : 0x7FC0DEADu;
}

struct alignas(16) Two {
  double values[2];
};

// Not inlined, so that the kernel fits the instruction cache.
__device__ __noinline__ StoredFour fetch_any(const void* row, DType dtype, int64_t first, int64_t cols, bool aligned) {
  return fetch_four(row, dtype, first, cols, aligned);
}

// Loads the four columns of four vectors that a thread is responsible for. Complete stages of floats, the common case,
// are read without any checks: these would take longer than the arithmetic.
template <int kQueries, bool kScaled, bool kCentred>
class Stager {
 public:
  __device__ __forceinline__ Stager(const DistanceTask& task, CertainShared<kQueries>& tile)
      : task_(task),
        tile_(tile),
        four_(static_cast<int>(threadIdx.x) % kFours),
        vector_(static_cast<int>(threadIdx.x) / kFours),
        queries_aligned_(fours_aligned(task.queries)),
        rows_aligned_(fours_aligned(task.rows)),
        floats_(task.queries.dtype == DType::f32 && task.rows.dtype == DType::f32),
        whole_cols_(floats_ ? task.cols : 0) {
    KITH_UNROLL
    for (int round = 0; round < kRounds; ++round) {
      const std::byte* const vector = tile.vectors[round * kVectorsPerRound + vector_];
      floats_at_[round] = vectors<uint32_t>(vector) + 4 * four_;
    }
  }

  __device__ __forceinline__ void fetch(int64_t first_col) {
    if constexpr (kCentred) fetch_centre(first_col + 4 * four_);
    if (first_col + Tile<kQueries>::kCols <= whole_cols_) {
      if (queries_aligned_ && rows_aligned_) {
        KITH_UNROLL
        for (int round = 0; round < kRounds; ++round) {
          fours_[round] = widen_bits(load_vector<Four<uint32_t>>(floats_at_[round] + first_col));
        }
        return;
      }
      KITH_UNROLL
      for (int round = 0; round < kRounds; ++round) {
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) fours_[round].bits[i] = floats_at_[round][first_col + i];
      }
      return;
    }
    KITH_UNROLL
    for (int round = 0; round < kRounds; ++round) {
      const bool query = of_query(round);
      fours_[round] =
          fetch_any(tile_.vectors[round * kVectorsPerRound + vector_], query ? task_.queries.dtype : task_.rows.dtype,
                    first_col + four_ * 4, task_.cols, query ? queries_aligned_ : rows_aligned_);
    }
  }

  __device__ __forceinline__ void store(int buffer) { floats_ ? store_as<true>(buffer) : store_as<false>(buffer); }

  template <bool kFloats>
  __device__ __forceinline__ void store_as(int buffer) {
    KITH_UNROLL
    for (int round = 0; round < kRounds; ++round) {
      const int vector = round * kVectorsPerRound + vector_;
      double values[4];
      const DType dtype = kFloats ? DType::f32 : of_query(round) ? task_.queries.dtype : task_.rows.dtype;
      widen_four(fours_[round], dtype, values);
      if constexpr (kCentred) {
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) values[i] -= static_cast<double>(centre_[i]);
      }
      KITH_UNROLL
      for (int i = 0; i < 4 && !kScaled; ++i) norms_[round] = fma(values[i], values[i], norms_[round]);
      Two* const place = vectors<Two>(tile_.values[buffer][vector] + four_ * 4);
      place[0] = {{values[0], values[1]}};
      place[1] = {{values[2], values[3]}};
    }
  }

  // Squared norms, summed over the threads that load a vector. Those of scaled vectors are known.
  template <bool kProduct>
  __device__ __forceinline__ void write_norms(int64_t first_row) const {
    KITH_UNROLL
    for (int round = 0; round < kRounds; ++round) {
      double norm = norms_[round];
      KITH_UNROLL
      for (int apart = 1; apart < kFours; apart *= 2) norm += __shfl_xor_sync(0xFFFFFFFFu, norm, apart);
      if (four_ != 0) continue;
      const int vector = round * kVectorsPerRound + vector_;
      tile_.norms[vector] = kProduct ? sqrt(norm) : norm;
      // Squares of floats are finite in double precision, and so is their sum.
      if (!of_query(round) && task_.first_bad != nullptr && !(norm < HUGE_VAL)) {
        const int64_t row = first_row + vector - kQueries;
        if (row < task_.rows.count) atomicMin(task_.first_bad, static_cast<uint32_t>(row));
      }
    }
  }

 private:
  static constexpr int kFours = Tile<kQueries>::kCols / 4;
  static constexpr int kVectorsPerRound = kThreads / kFours;
  static constexpr int kRounds = CertainShared<kQueries>::kVectors / kVectorsPerRound;
  static_assert(kRounds * kVectorsPerRound == CertainShared<kQueries>::kVectors && kQueries % kVectorsPerRound == 0);

  __device__ static constexpr bool of_query(int round) { return round * kVectorsPerRound < kQueries; }

  __device__ __forceinline__ void fetch_centre(int64_t first) {
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) centre_[i] = first + i < task_.cols ? task_.centre[first + i] : 0.0f;
  }

  const DistanceTask& task_;
  CertainShared<kQueries>& tile_;
  const int four_;
  const int vector_;
  const bool queries_aligned_;
  const bool rows_aligned_;
  const bool floats_;
  const int64_t whole_cols_;  // columns read without checks
  const uint32_t* floats_at_[kRounds];
  StoredFour fours_[kRounds];
  float centre_[kCentred ? 4 : 1];
  double norms_[kRounds] = {};
};

// Squared norms of vectors scaled to length 1: 1 up to rounding, 0 for zero vectors, NaN if not finite.
template <int kQueries>
__device__ __forceinline__ void write_scaled_norms(const DistanceTask& task, CertainShared<kQueries>& tile,
                                                   int64_t first_row) {
  const auto vector = static_cast<int>(threadIdx.x);
  if (vector >= CertainShared<kQueries>::kVectors) return;
  const double scale = tile.scales[vector];
  tile.norms[vector] = scale == 0 ? 0.0 : 1.0 + (scale - scale);
  const int64_t row = first_row + vector - kQueries;
  if (vector >= kQueries && scale != scale && task.first_bad != nullptr && row < task.rows.count) {
    atomicMin(task.first_bad, static_cast<uint32_t>(row));
  }
}

// The products of a warp's share of the tile.
template <int kQueries>
class WarpProducts {
 public:
  __device__ __forceinline__ WarpProducts()
      : group_(static_cast<int>(threadIdx.x) % 32 / 4),
        member_(static_cast<int>(threadIdx.x) % 4),
        warp_(static_cast<int>(threadIdx.x) / 32) {}

  __device__ __forceinline__ void add(const CertainShared<kQueries>& tile, int buffer) {
    KITH_UNROLL
    for (int part = 0; part < Share::kCols / 8; ++part) {  // eight columns, two of each member's
      const auto two = [&](int vector) {
        return load_vector<Two>(tile.values[buffer][vector] + part / 2 * 16 + member_ * 4 + part % 2 * 2);
      };
      double a[Share::kQueryTiles][4];
      KITH_UNROLL
      for (int m = 0; m < Share::kQueryTiles; ++m) {
        KITH_UNROLL
        for (int half = 0; half < 2; ++half) {
          const Two values = two(query(m, half));
          a[m][half] = values.values[0];
          a[m][2 + half] = values.values[1];
        }
      }
      KITH_UNROLL
      for (int n = 0; n < Share::kRowTiles; ++n) {
        const Two b = two(kQueries + Share::first_row(warp_, n) + group_);
        KITH_UNROLL
        for (int m = 0; m < Share::kQueryTiles; ++m) ptx::multiply_add(sums_[m][n], a[m], b.values);
      }
    }
  }

  // Overwrites the values: all threads have read them.
  __device__ __forceinline__ void write(CertainShared<kQueries>& tile) const {
    KITH_UNROLL
    for (int m = 0; m < Share::kQueryTiles; ++m) {
      KITH_UNROLL
      for (int half = 0; half < 2; ++half) {
        KITH_UNROLL
        for (int n = 0; n < Share::kRowTiles; ++n) {
          double* const place = tile.product(query(m, half), Share::first_row(warp_, n) + member_ * 2);
          store_vector(place, Two{{sums_[m][n][half * 2], sums_[m][n][half * 2 + 1]}});
        }
      }
    }
  }

 private:
  using Share = Tile<kQueries>;

  __device__ __forceinline__ int query(int m, int half) const {
    return Share::first_query(warp_) + m * 16 + half * 8 + group_;
  }

  const int group_;
  const int member_;
  const int warp_;
  double sums_[Share::kQueryTiles][Share::kRowTiles][4] = {};
};

// The canonical sum of one pair, a lane for each of sixteen threads.
template <KeyKind kStep>
__device__ __forceinline__ double pair_sum(const DistanceTask& task, int64_t query, int64_t row) {
  const bool scaled = task.kind == KeyKind::cosine;
  const double query_scale = scaled ? task.queries.inverse_norms[query] : 1.0;
  const double row_scale = scaled ? task.rows.inverse_norms[row] : 1.0;
  const std::byte* const q = row_bytes_at(task.queries, query);
  const std::byte* const x = row_bytes_at(task.rows, row);
  double sum = 0;
#pragma unroll 4
  for (int64_t column = threadIdx.x % kCanonicalLanes; column < task.cols; column += kCanonicalLanes) {
    const double a = stored_value(q, task.queries.dtype, column) * query_scale;  // exact where nothing is scaled
    const double b = stored_value(x, task.rows.dtype, column) * row_scale;
    sum = canonical_step<kStep>(sum, a, b, 0.0, 0.0);
  }
  __syncwarp();
  return warp_sum<kCanonicalLanes>(sum);
}

template <KeyKind kKind, int kQueries, bool kCentred>
__global__ void __launch_bounds__(kThreads, 3) certain_distance_kernel(const __grid_constant__ DistanceTask task) {
  constexpr bool kProduct = kKind == KeyKind::inner_product;
  constexpr bool kScaled = kKind == KeyKind::cosine;
  constexpr int kRows = Tile<kQueries>::kRows;
  constexpr int kCols = Tile<kQueries>::kCols;
  __shared__ CertainShared<kQueries> tile;
  __shared__ uint32_t uncertain;
  const int64_t first_query = static_cast<int64_t>(blockIdx.y) * kQueries;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kRows;
  if (threadIdx.x == 0) uncertain = 0;
  if (const int i = static_cast<int>(threadIdx.x); i < CertainShared<kQueries>::kVectors) {
    const bool query = i < kQueries;
    const DeviceRowsView& source = query ? task.queries : task.rows;
    const int64_t vector = query ? first_query + i : first_row + i - kQueries;
    tile.vectors[i] = row_bytes_at(source, vector < source.count ? vector : source.count - 1);
    if constexpr (kScaled) tile.scales[i] = vector < source.count ? source.inverse_norms[vector] : 0.0;
  }
  __syncthreads();

  WarpProducts<kQueries> products;
  Stager<kQueries, kScaled, kCentred> stager(task, tile);
  stager.fetch(0);
  stager.store(0);
  if (kCols < task.cols) stager.fetch(kCols);
  __syncthreads();
  int buffer = 0;
  // Loads are issued one stage ahead.
  for (int64_t first_col = 0; first_col < task.cols; first_col += kCols) {
    if (first_col + kCols < task.cols) stager.store(1 - buffer);
    if (first_col + 2 * kCols < task.cols) stager.fetch(first_col + 2 * kCols);
    products.add(tile, buffer);
    buffer = 1 - buffer;
    __syncthreads();
  }
  if constexpr (kScaled) {
    write_scaled_norms(task, tile, first_row);
  } else {
    stager.template write_norms<kProduct>(first_row);
  }
  __syncthreads();

  products.write(tile);
  __syncthreads();

  // A thread has every other query, or so, of one row: what is written out for its products, few at a time, stays in
  // the instruction cache.
  constexpr int kEach = kQueries * kRows / kThreads;
  constexpr int kApart = kThreads / kRows;
  const double error = certain_error(task.cols);
  const auto row_in_tile = static_cast<int>(threadIdx.x) % kRows;
  const auto of_pair = [&](int i) { return i * kApart + static_cast<int>(threadIdx.x) / kRows; };
  const double nx = tile.norms[kQueries + row_in_tile];
  const double row_scale = kScaled ? tile.scales[kQueries + row_in_tile] : 1.0;
  const auto product_of = [&](int query_in_tile) {
    const double product = *tile.product(query_in_tile, row_in_tile);
    return kScaled ? product * (tile.scales[query_in_tile] * row_scale) : product;
  };
  const auto error_of = [&](double nq) { return error * (kProduct ? nq * nx : nq + nx); };
  const auto place_of = [&](int query_in_tile) {
    return task.keys + (first_query + query_in_tile) * task.stride + first_row + row_in_tile;
  };
  const int64_t queries_left = first_row + row_in_tile < task.rows.count ? task.queries.count - first_query : 0;
  uint32_t open = 0;  // bits of this thread's uncertain pairs
#pragma unroll 4
  for (int i = 0; i < kEach; ++i) {
    const int query_in_tile = of_pair(i);
    const double nq = tile.norms[query_in_tile];
    const CertainKey found = certain_key<kKind, true>(product_of(query_in_tile), nq, nx, error_of(nq));
    const bool inside = query_in_tile < queries_left;
    if (inside && found.certain) *place_of(query_in_tile) = written_key(task, found.key);
    open |= inside && !found.certain ? 1u << i : 0u;
  }
  while (open != 0) {  // rare
    const int query_in_tile = of_pair(__ffs(static_cast<int>(open)) - 1);
    open &= open - 1;
    const double nq = tile.norms[query_in_tile];
    const CertainKey found = certain_key<kKind>(product_of(query_in_tile), nq, nx, error_of(nq));
    if (found.certain) {
      *place_of(query_in_tile) = written_key(task, found.key);
      continue;
    }
    const uint32_t at = atomicAdd(&uncertain, 1u);
    if (at < kMost) tile.uncertain[at] = static_cast<uint16_t>(query_in_tile * kRows + row_in_tile);
  }
  __syncthreads();
  const uint32_t pairs = uncertain;
  if (pairs > kMost) {
    if (threadIdx.x == 0) task.keys[first_query * task.stride + first_row] = tile_mark(task);
    return;
  }
  // Both halves of a warp take part; an odd last pair is computed twice.
  for (uint32_t first = threadIdx.x / 32 * 2; first < pairs; first += kThreads / kCanonicalLanes) {
    const uint32_t i = first + threadIdx.x % 32 / kCanonicalLanes;
    const uint32_t pair = tile.uncertain[i < pairs ? i : pairs - 1];
    const int64_t query = first_query + pair / kRows;
    const int64_t row = first_row + pair % kRows;
    const double sum = pair_sum<step_kind(kKind)>(task, query, row);
    if (threadIdx.x % kCanonicalLanes == 0) {
      task.keys[query * task.stride + row] = written_key(task, key_of_sum(task, sum, query, row));
    }
  }
}

// Recomputes the marked ones of `tiles` tiles, `across` per row of tiles. Usually none is marked, so each block checks
// many; if all are marked, the blocks have equal shares.
template <KeyKind kStep, int kQueries>
__global__ void __launch_bounds__(kThreads, 2)
    marked_tiles_kernel(const __grid_constant__ DistanceTask task, int64_t tiles, int64_t across) {
  constexpr int kRows = Tile<kQueries>::kRows;
  __shared__ DistanceTileShared shared;
  __shared__ int marked[kThreads];
  __shared__ int count;
  const auto place_of = [&](int64_t tile) { return tile / across * kQueries * task.stride + tile % across * kRows; };
  const int64_t apart = gridDim.x;
  for (int64_t first = blockIdx.x; first < tiles; first += apart * kThreads) {
    const int64_t mine = first + threadIdx.x * apart;
    const bool found = mine < tiles && task.keys[place_of(mine)] == tile_mark(task);
    if (__syncthreads_or(found ? 1 : 0) == 0) continue;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    if (found) marked[atomicAdd(&count, 1)] = static_cast<int>(threadIdx.x);
    __syncthreads();
    for (int i = 0; i < count; ++i) {
      const int64_t tile = first + marked[i] * apart;
      const int64_t first_query = tile / across * kQueries;
      const int64_t first_row = tile % across * kRows;
      DistanceTask part = task;
      part.rows.count = first_row + kRows < task.rows.count ? first_row + kRows : task.rows.count;
      for (int64_t query = first_query; query < first_query + kQueries && query < task.queries.count;
           query += kTileQueries) {
        for (int64_t row = first_row; row < part.rows.count; row += kTileRows) {
          distance_tile<kStep>(TileBlock(), shared, part, query, row);
          __syncthreads();
        }
      }
    }
  }
}

template <KeyKind kKind, int kQueries, bool kCentred = false>
void launch_tiles(const DistanceTask& task, cudaStream_t stream) {
  const int64_t across = divide_up(task.rows.count, Tile<kQueries>::kRows);
  const int64_t down = divide_up(task.queries.count, kQueries);
  launch(certain_distance_kernel<kKind, kQueries, kCentred>, Grid::of(across, down, kThreads), stream, task);
  const int64_t tiles = across * down;
  launch(marked_tiles_kernel<step_kind(kKind), kQueries>, Grid::of(std::min(tiles, kMostMarkedBlocks), kThreads),
         stream, task, tiles, across);
}

template <KeyKind kKind>
void launch_kind(const DistanceTask& task, cudaStream_t stream) {
  if constexpr (has_differences(kKind)) {
    if (task.centre != nullptr) return launch_tiles<kKind, 64, true>(task, stream);
  }
  if (task.queries.count <= 16) return launch_tiles<kKind, 16>(task, stream);
  if (task.queries.count <= 32) return launch_tiles<kKind, 32>(task, stream);
  launch_tiles<kKind, 64>(task, stream);
}

}  // namespace

void launch_certain_distance(const DistanceTask& task, cudaStream_t stream) {
  switch (task.kind) {
    case KeyKind::inner_product: return launch_kind<KeyKind::inner_product>(task, stream);
    case KeyKind::cosine: return launch_kind<KeyKind::cosine>(task, stream);
    case KeyKind::l2: return launch_kind<KeyKind::l2>(task, stream);
    default: return launch_kind<KeyKind::squared_l2>(task, stream);
  }
}

}  // namespace kith
