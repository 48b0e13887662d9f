// Products on the matrix units of every GPU from compute capability 8.0 on, with mma.sync.
//
// A block of four warps multiplies 128 queries with tile after tile of 128 rows; a warp has 32 queries and all rows of
// the tile. Chunks of both come through three stages of shared memory by asynchronous copies.
#include "kernels/matrix/product_cuda.hpp"

#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "kernels/matrix/epilogue_of_cuda.hpp"

#include <type_traits>

namespace kith {
namespace {

constexpr int kThreads = 128;
constexpr int kWarpQueries = kSlabs * 16;
constexpr int kStages = 3;
// Bytes of the terms of a tile of rows.
template <typename Epilogue>
inline constexpr int kTermBytes = kOperandTile * 4 * Epilogue::kTerms;
template <typename Epilogue>
inline constexpr int kStageBytes = 2 * kTileChunkBytes + kTermBytes<Epilogue>;

template <int kTermBytes>
__device__ void load_stage(const ProductOperands& operands, int64_t query_tile, int tile, int chunk, uint32_t stage) {
  const std::byte* const queries = operands.queries + (query_tile * operands.chunks + chunk) * kTileChunkBytes;
  const std::byte* const rows = operands.base + (int64_t{tile} * operands.chunks + chunk) * kTileChunkBytes;
  KITH_UNROLL
  for (int i = 0; i < kTileChunkBytes / (kThreads * 16); ++i) {
    const int at = (static_cast<int>(threadIdx.x) + i * kThreads) * 16;
    ptx::copy_async_16(stage + at, queries + at);
    ptx::copy_async_16(stage + kTileChunkBytes + at, rows + at);
  }
  if (chunk == operands.chunks - 1 && threadIdx.x < kTermBytes / 16) {
    const auto* terms = static_cast<const std::byte*>(operands.terms) + int64_t{tile} * kTermBytes;
    ptx::copy_async_16(stage + 2 * kTileChunkBytes + threadIdx.x * 16, terms + threadIdx.x * 16);
  }
}

// The products of one chunk: four steps of 32 bytes.
template <typename Acc>
__device__ void multiply_chunk(uint32_t stage, Slabs<Acc>& products) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const auto address = [&](uint32_t block, int row, int unit) {
    return block + static_cast<uint32_t>(row * kChunkBytes + ((unit ^ (row % 8)) * 16));
  };
  KITH_UNROLL
  for (int step = 0; step < kChunkBytes / 32; ++step) {
    uint32_t a[kSlabs][4];
    KITH_UNROLL
    for (int slab = 0; slab < kSlabs; ++slab) {
      const int row = warp * kWarpQueries + slab * 16 + lane % 16;
      ptx::load_matrices(a[slab], address(stage, row, 2 * step + lane / 16));
    }
    KITH_UNROLL
    for (int pair = 0; pair < kOperandTile / 16; ++pair) {
      uint32_t b[4];
      const int row = pair * 16 + lane % 8 + lane / 16 * 8;
      ptx::load_matrices(b, address(stage + kTileChunkBytes, row, 2 * step + lane / 8 % 2));
      KITH_UNROLL
      for (int slab = 0; slab < kSlabs; ++slab) {
        ptx::multiply_add(&products[slab][8 * pair], a[slab], b);
        ptx::multiply_add(&products[slab][8 * pair + 4], a[slab], b + 2);
      }
    }
  }
}

template <typename Acc, typename Epilogue>
__global__ void __launch_bounds__(kThreads)
    product_mma_kernel(ProductOperands operands, ProductSchedule schedule, typename Epilogue::Target target) {
  extern __shared__ __align__(16) std::byte shared[];
  constexpr int kBytes = kStageBytes<Epilogue>;
  // A block works on half a query tile of an item; the halves are neighbours.
  const int index = static_cast<int>(blockIdx.x) / 2;
  if (index >= schedule.count()) return;
  const ProductItem item = schedule.item(index);
  if (item.empty()) return;
  const int64_t query_tile = 2 * int64_t{item.query_tile} + blockIdx.x % 2;  // of kOperandTile queries
  Epilogue epilogue(target, operands, shared + kStages * kBytes);
  const uint32_t stages = ptx::shared_address(shared);
  const int chunks = static_cast<int>(operands.chunks);
  epilogue.begin(query_tile * kOperandTile, {static_cast<int>(threadIdx.x) / 32 * kWarpQueries, 16},
                 int64_t{item.first_tile} * kOperandTile);

  int next_tile = item.first_tile;
  int next_chunk = 0;
  int next_stage = 0;
  const auto load_next = [&] {
    if (next_tile < item.end_tile) {
      load_stage<kTermBytes<Epilogue>>(operands, query_tile, next_tile, next_chunk, stages + next_stage * kBytes);
      next_stage = (next_stage + 1) % kStages;
      if (++next_chunk == chunks) {
        next_chunk = 0;
        ++next_tile;
      }
    }
    ptx::copy_async_commit();
  };
  for (int ahead = 0; ahead < kStages - 1; ++ahead) load_next();
  int stage = 0;
  for (int tile = item.first_tile; tile < item.end_tile; ++tile) {
    Slabs<Acc> products = {};
    for (int chunk = 0; chunk < chunks; ++chunk) {
      ptx::copy_async_wait<kStages - 2>();
      __syncthreads();  // the stage has come for all, and the one before has been read by all
      load_next();
      multiply_chunk<Acc>(stages + stage * kBytes, products);
      if (chunk == chunks - 1) {
        epilogue.tile(products, vectors<const Acc>(shared + stage * kBytes + 2 * kTileChunkBytes), tile);
      }
      stage = (stage + 1) % kStages;
    }
  }
  epilogue.end();
}

template <typename Acc, typename Epilogue>
void launch_engine(const ProductOperands& operands, const ProductSchedule& schedule,
                   const typename Epilogue::Target& target, cudaStream_t stream) {
  if (schedule.items == 0) return;
  constexpr int kBytes = kStages * kStageBytes<Epilogue> + kThreads / 32 * Epilogue::kSharedBytes;
  const auto kernel = product_mma_kernel<Acc, Epilogue>;
  KITH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  launch(kernel, Grid::of(2 * schedule.items, kThreads).with_shared(kBytes), stream, operands, schedule, target);
}

}  // namespace

template <typename Target>
void launch_mma(const ProductOperands& operands, const ProductSchedule& schedule, const Target& target,
                cudaStream_t stream) {
  if constexpr (!std::is_same_v<Target, ProductNearest>) {
    if (operands.type == OperandType::bytes) {
      return launch_engine<int32_t, EpilogueOf<Target, int32_t>>(operands, schedule, target, stream);
    }
  }
  launch_engine<float, EpilogueOf<Target, float>>(operands, schedule, target, stream);
}

KITH_INSTANTIATE_PRODUCTS(launch_mma);

}  // namespace kith
