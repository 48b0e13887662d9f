#include "kernels/matrix/stream_product_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/half.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
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
constexpr int kStages = 3;  // of a chunk of the queries and of every warp's rows in shared memory
constexpr int kChunkCols = kChunkBytes / 2;
constexpr int kChunkPairs = kChunkCols / 8;  // of neighbouring columns, that a lane has of a row's chunk
constexpr int kChainChunks = static_cast<int>(kStreamChain) / kChunkCols;
constexpr int kQueryTiles = static_cast<int>(kStreamMostQueries) / 8;
static_assert(kStreamMostQueries == kOperandTile);

template <typename T>
struct alignas(2 * sizeof(T)) Two {
  T values[2];
};

// The chunks of a warp's rows on their way through shared memory. Rows lie so far apart that the lanes read them, two
// columns each, without bank conflicts.
template <typename T>
class WarpRows {
 public:
  static constexpr int kPitch = (kChunkCols + 8) * static_cast<int>(sizeof(T));
  static constexpr int kBytes = kTileRows * kPitch;  // of a stage

  __device__ WarpRows(const DeviceRowsView& rows, int64_t cols, int64_t tile, std::byte* memory)
      : cols_(cols), memory_(memory) {
    const auto row_bytes = rows.stride * static_cast<int64_t>(sizeof(T));
    whole_ = is_aligned(rows.data, 16) && row_bytes % 16 == 0 && cols % kUnitValues == 0;
    KITH_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      const int64_t row = tile * kTileRows + unit(i) / kRowUnits;
      from_[i] = rows.row<T>(row < rows.count ? row : rows.count - 1) + column(i);  // past the last one it comes again
    }
  }

  // Begins to copy a chunk; zeros where there are no columns.
  __device__ void fetch(int chunk, int stage) const {
    const int64_t start = int64_t{chunk} * kChunkCols;
    KITH_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      std::byte* const to = place(stage, unit(i) / kRowUnits, column(i));
      const int64_t left = cols_ - start - column(i);
      if (whole_) {
        ptx::copy_async_16(ptx::shared_address(to), left > 0 ? from_[i] + start : from_[i], left > 0);
      } else {
        KITH_UNROLL
        for (int j = 0; j < kUnitValues; ++j) vectors<T>(to)[j] = j < left ? from_[i][start + j] : T{};
      }
    }
  }

  __device__ Two<T> pair(int stage, int row, int col) const { return load_vector<Two<T>>(place(stage, row, col)); }

 private:
  static constexpr int kUnitValues = 16 / static_cast<int>(sizeof(T));
  static constexpr int kRowUnits = kChunkCols / kUnitValues;
  static constexpr int kCopies = kTileRows * kRowUnits / 32;

  static __device__ int unit(int i) { return lane_index() + 32 * i; }
  static __device__ int column(int i) { return unit(i) % kRowUnits * kUnitValues; }
  __device__ std::byte* place(int stage, int row, int col) const {
    return memory_ + stage * kBytes + row * kPitch + col * static_cast<int>(sizeof(T));
  }

  const int64_t cols_;
  std::byte* const memory_;
  bool whole_;
  const T* from_[kCopies];
};

// Two neighbouring values of the centre.
__device__ float2 centre_pair(const float* centre, int64_t col, int64_t cols) {
  if (col + 2 <= cols) return load_vector<float2>(centre + col);
  return {col < cols ? centre[col] : 0.0f, 0.0f};
}

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
__device__ bool all_finite(const T* values, int64_t cols) {
  for (int64_t col = 0; col < cols; ++col) {
    const auto value = static_cast<float>(values[col]);
    if (value - value != 0.0f) return false;
  }
  return true;
}

// Writes a lane's products and `term`, or adds them to what is there, and begins anew.
__device__ void write_products(const StreamProductTask& task, const int64_t (&row)[2], const bool (&real)[2],
                               const float (&term)[2], bool adds, float (&products)[kQueryTiles][4]) {
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) {
    KITH_UNROLL
    for (int tile = 0; tile < kQueryTiles; ++tile) {
      KITH_UNROLL
      for (int j = 0; j < 2; ++j) {
        float& sum = products[tile][2 * i + j];
        const int query = 8 * tile + lane_index() % 4 * 2 + j;
        if (real[i] && query < task.query_count) {
          float* const place = task.values + query * task.stride + row[i];
          *place = (adds ? *place + sum : sum) + term[i];
        }
        sum = 0;
      }
    }
  }
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

template <typename T>
constexpr int64_t shared_bytes(int64_t warps) {
  return kStages * (kTileChunkBytes + warps * WarpRows<T>::kBytes);
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
  BaseFacts* const facts = task.base.base_facts;
  const float scale = operand_scale(facts->sample_largest);
  const int64_t tiles = (rows.count + kTileRows - 1) / kTileRows;
  std::byte* const rows_memory =
      stages + kStages * kTileChunkBytes + threadIdx.x / 32 * (kStages * WarpRows<T>::kBytes);
  OperandFacts largest = {0, 0};
  bool unsure = false;

  for (int64_t first = static_cast<int64_t>(blockIdx.x) * warps; first < tiles;
       first += static_cast<int64_t>(gridDim.x) * warps) {
    // Lane 4 g + t has rows g and g + 8, and columns 8 i + 2 t and 8 i + 2 t + 1 of a chunk.
    const int64_t tile = first + threadIdx.x / 32;
    int64_t row[2];
    bool real[2];
    double inverse_norm[2] = {1, 1};
    KITH_UNROLL
    for (int i = 0; i < 2; ++i) {
      row[i] = tile * kTileRows + lane / 4 + 8 * i;
      real[i] = row[i] < rows.count;
      if constexpr (kForm == Form::unit) inverse_norm[i] = real[i] ? rows.inverse_norms[row[i]] : 0.0;
    }
    const WarpRows<T> coming(rows, cols, tile, rows_memory);
    const auto fetch = [&](int chunk) {
      if (chunk < chunks) {
        fetch_queries(task.queries, chunk, stages + chunk % kStages * kTileChunkBytes);
        coming.fetch(chunk, chunk % kStages);
      }
      ptx::copy_async_commit();
    };
    float products[kQueryTiles][4] = {};
    HalfSums sums[2];
    __syncthreads();  // all have read what the stages had
    for (int chunk = 0; chunk < kStages - 1; ++chunk) fetch(chunk);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      ptx::copy_async_wait<kStages - 2>();
      __syncthreads();
      fetch(chunk + kStages - 1);
      const int stage = chunk % kStages;
      uint32_t a[kChunkSteps][4];
      HalfSums some[2];
      KITH_UNROLL
      for (int pair = 0; pair < kChunkPairs; ++pair) {
        const int col = 8 * pair + 2 * (lane % 4);
        float2 centre = {0, 0};
        if constexpr (kForm == Form::centred) {
          centre = centre_pair(task.base.centre, int64_t{chunk} * kChunkCols + col, cols);
        }
        KITH_UNROLL
        for (int i = 0; i < 2; ++i) {
          const Two<T> two = coming.pair(stage, lane / 4 + 8 * i, col);
          const auto value = [&](int j, float of) {
            return formed<kForm>(static_cast<float>(two.values[j]), of, inverse_norm[i], scale);
          };
          a[pair / 2][pair % 2 * 2 + i] = round_halves<false>(value(0, centre.x), value(1, centre.y), some[i]);
        }
      }
      KITH_UNROLL
      for (int i = 0; i < 2; ++i) add_sums(some[i], sums[i]);
      multiply_chunk(a, stages + stage * kTileChunkBytes, products, query_tiles);
      if ((chunk + 1) % kChainChunks == 0 && chunk + 1 < chunks) {
        const float no_term[2] = {0, 0};
        write_products(task, row, real, no_term, chunk >= kChainChunks, products);
      }
    }

    float term[2] = {0, 0};
    KITH_UNROLL
    for (int i = 0; i < 2; ++i) {
      join_sums(sums[i]);
      if (!real[i]) continue;
      const OperandFacts mine = facts_of(sums[i], cols);
      largest = {fmaxf(largest.norm, mine.norm), fmaxf(largest.residual, mine.residual)};
      unsure = unsure || !sums[i].inside();
      if (!sums[i].inside() && task.first_bad != nullptr && lane % 4 == 0 && !all_finite(rows.row<T>(row[i]), cols)) {
        atomicMin(task.first_bad, static_cast<uint32_t>(row[i]));
      }
      if (kForm != Form::plain) term[i] = 0.5f * sums[i].squares;
      // A zero vector is at distance 1 of every other: as far as one at a right angle.
      if (kForm == Form::unit && sums[i].squares == 0.0f) term[i] = 0.5f * scale * scale;
    }
    write_products(task, row, real, term, chunks > kChainChunks, products);
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
void launch_rows(const StreamProductTask& task, cudaStream_t stream) {
  const Form form = form_of(task.base.kind);
  const auto kernel = form == Form::plain     ? stream_product_kernel<Form::plain, T>
                      : form == Form::centred ? stream_product_kernel<Form::centred, T>
                                              : stream_product_kernel<Form::unit, T>;
  allow_all_shared_memory(kernel);
  // One block for each multiprocessor, with as many warps as share its rows evenly.
  const int64_t tiles = divide_up(task.base.rows.count, kTileRows);
  int device = 0;
  int room = 0;
  KITH_CUDA_CHECK(cudaGetDevice(&device));
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const int64_t most =
      std::min<int64_t>(kMostWarps, (room - kStages * kTileChunkBytes) / (kStages * WarpRows<T>::kBytes));
  const int64_t passes = divide_up(tiles, most * task.multiprocessors);
  const int64_t warps =
      std::clamp<int64_t>(divide_up(tiles, passes * task.multiprocessors), std::min<int64_t>(kLeastWarps, most), most);
  const Grid grid = Grid::of(std::min<int64_t>(divide_up(tiles, warps), task.multiprocessors), 32 * warps);
  launch(kernel, grid.with_shared(shared_bytes<T>(warps)), stream, task);
}

}  // namespace

void launch_stream_product(const StreamProductTask& task, cudaStream_t stream) {
  if (task.base.rows.count == 0 || task.query_count == 0) return;
  switch (task.base.rows.dtype) {
    case DType::f32: return launch_rows<float>(task, stream);
    case DType::f16: return launch_rows<Half>(task, stream);
    case DType::bf16: return launch_rows<BFloat16>(task, stream);
    default: throw InvalidArgument("rows of bytes are not multiplied as they are stored");
  }
}

}  // namespace kith
