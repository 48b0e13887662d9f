// Products on Hopper's matrix units, with wgmma.
//
// A block stays on its multiprocessor and takes item after item. Two warpgroups multiply 128 queries each with tile
// after tile of 128 rows, from shared memory; a third keeps the copy engine busy with chunks for a ring of stages ahead
// and gives them its registers. Where a row is short the queries' chunks stay in shared memory for the whole item and
// the warpgroups take turns: one multiplies while the other looks at its products. Where it is long, each stage brings
// the queries' chunk too. Up to 128 queries are multiplied by both warpgroups, with every other pair of tiles each.
#include "kernels/matrix/product_cuda.hpp"

#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx_hopper.hpp"
#include "kernels/matrix/epilogue_of_cuda.hpp"

#include <algorithm>
#include <type_traits>

namespace kith {
namespace {

constexpr int kGroups = 2;  // warpgroups that multiply
constexpr int kGroupThreads = 128;
constexpr int kMultipliers = kGroups * kGroupThreads;
constexpr int kThreads = kMultipliers + kGroupThreads;
constexpr int kMultiplierRegisters = 232;  // of 168 that all begin with
constexpr int kProducerRegisters = 40;
constexpr int kGroupQueries = kSlabs * 64;
constexpr int kSlabBytes = 64 * kChunkBytes;
constexpr int kMostStages = 9;
constexpr int kSharedBytes = 227 * 1024;

// How a block's shared memory is used; a function of the row's length.
struct Layout {
  int stages;
  bool resident;      // the queries stay
  bool turns;         // the warpgroups take turns: a stage waits for the second one for a whole tile
  bool split;         // the warpgroups share the tiles, not the queries
  int query_buffers;  // two where items are short: the next one's queries come while this one's are multiplied
};

// Bytes of the terms of a tile of rows.
template <typename Epilogue>
inline constexpr int kTermBytes = kOperandTile * 4 * Epilogue::kTerms;

template <typename Epilogue>
constexpr int fixed_bytes() {
  // Alignment, barriers, the epilogue's, terms.
  return 1024 + 512 + kMultipliers / 32 * Epilogue::kSharedBytes + kMostStages * kTermBytes<Epilogue>;
}

template <typename Epilogue>
Layout layout_for(int64_t chunks, int64_t queries) {
  const int64_t room = kSharedBytes - fixed_bytes<Epilogue>();
  const int64_t resident_stages = (room - chunks * 2 * kTileChunkBytes) / kTileChunkBytes;
  Layout layout;
  layout.resident = resident_stages >= 4;
  layout.stages = static_cast<int>(
      std::min<int64_t>(layout.resident ? resident_stages : room / (3 * kTileChunkBytes), kMostStages));
  layout.split = layout.resident && layout.stages > 2 * chunks && queries <= kGroupQueries;
  layout.turns = layout.resident && layout.stages > 2 * chunks && !layout.split;
  layout.query_buffers = 1;
  const int64_t left = (room - 2 * chunks * 2 * kTileChunkBytes) / kTileChunkBytes;
  if (Epilogue::kShortItems && left > 2 * chunks) {
    layout.query_buffers = 2;
    layout.stages = static_cast<int>(std::min<int64_t>(left, kMostStages));
  }
  return layout;
}

struct Barriers {
  uint64_t full[kMostStages];
  uint64_t empty[kMostStages];
  uint64_t queries_full[2];
  uint64_t queries_empty[2];
};

// A place in a ring, of stages or of the queries' buffers, and the parity of its current round.
struct Place {
  int at = 0;
  uint32_t parity = 0;

  __device__ void advance(int places) {
    if (++at < places) return;
    at = 0;
    parity ^= 1;
  }
};

struct BlockMemory {
  std::byte* queries;  // buffers x chunks x 32 KiB, where they stay
  std::byte* ring;     // stages of a chunk of rows, after the queries' one where they do not stay
  std::byte* terms;    // a tile's for each stage
  Barriers* barriers;
  std::byte* epilogue;
};

// A query tile is two operand tiles.
__device__ void copy_queries(const ProductOperands& operands, int query_tile, int chunk, std::byte* to,
                             uint64_t* barrier) {
  for (int half = 0; half < 2; ++half) {
    const int64_t block = (int64_t{query_tile} * 2 + half) * operands.chunks + chunk;
    ptx::copy_bulk(to + half * kTileChunkBytes, operands.queries + block * kTileChunkBytes, kTileChunkBytes, barrier);
  }
}

// The third warpgroup's first lane.
template <int kTermBytes>
__device__ void produce(const ProductOperands& operands, const ProductSchedule& schedule, const Layout& layout,
                        const BlockMemory& memory) {
  const int chunks = static_cast<int>(operands.chunks);
  const int stage_bytes = layout.resident ? kTileChunkBytes : 3 * kTileChunkBytes;
  Place place;
  Place queries;
  const int end = schedule.end_for(static_cast<int>(blockIdx.x));
  for (int index = static_cast<int>(blockIdx.x); index < end; index += static_cast<int>(gridDim.x)) {
    const ProductItem item = schedule.item(index);
    if (layout.resident) {
      uint64_t* const full = &memory.barriers->queries_full[queries.at];
      ptx::barrier_wait(&memory.barriers->queries_empty[queries.at], queries.parity ^ 1);
      ptx::barrier_arrive_and_expect(full, static_cast<uint32_t>(chunks * 2 * kTileChunkBytes));
      for (int chunk = 0; chunk < chunks; ++chunk) {
        copy_queries(operands, item.query_tile, chunk,
                     memory.queries + (queries.at * chunks + chunk) * 2 * kTileChunkBytes, full);
      }
    }
    queries.advance(layout.query_buffers);
    for (int tile = item.first_tile; tile < item.end_tile; ++tile) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        uint64_t* const full = &memory.barriers->full[place.at];
        std::byte* const stage = memory.ring + place.at * stage_bytes;
        ptx::barrier_wait(&memory.barriers->empty[place.at], place.parity ^ 1);
        const bool last = chunk == chunks - 1;
        ptx::barrier_arrive_and_expect(full, static_cast<uint32_t>(stage_bytes + (last ? kTermBytes : 0)));
        ptx::copy_bulk(stage, operands.base + (int64_t{tile} * chunks + chunk) * kTileChunkBytes, kTileChunkBytes,
                       full);
        if (!layout.resident) copy_queries(operands, item.query_tile, chunk, stage + kTileChunkBytes, full);
        if (last) {
          const auto* terms = static_cast<const std::byte*>(operands.terms) + int64_t{tile} * kTermBytes;
          ptx::copy_bulk(memory.terms + place.at * kTermBytes, terms, kTermBytes, full);
        }
        place.advance(layout.stages);
      }
    }
  }
}

// One chunk of rows times this warpgroup's queries, or its first steps.
template <int kSteps, typename Acc>
__device__ void multiply_chunk(Slabs<Acc>& products, const std::byte* queries, const std::byte* rows, bool accumulate) {
  const uint64_t b = ptx::operand_descriptor(rows);
  KITH_UNROLL
  for (int step = 0; step < kSteps; ++step) {
    KITH_UNROLL
    for (int slab = 0; slab < kSlabs; ++slab) {
      const uint64_t a = ptx::operand_descriptor(queries + slab * kSlabBytes);
      ptx::multiply_warpgroup(products[slab], ptx::descriptor_after(a, kStepBytes * step),
                              ptx::descriptor_after(b, kStepBytes * step), accumulate || step > 0);
    }
  }
}

// kLastSteps of the last chunk hold columns. A number known to the compiler: it serialises the matrix units' work where
// that is a branch.
template <typename Acc, typename Epilogue, int kLastSteps>
__device__ void consume(const ProductOperands& operands, const ProductSchedule& schedule, const Layout& layout,
                        const BlockMemory& memory, const typename Epilogue::Target& target) {
  const int chunks = static_cast<int>(operands.chunks);
  const int group = static_cast<int>(threadIdx.x) / kGroupThreads;
  const bool signals = threadIdx.x % 32 == 0;
  const int stage_bytes = layout.resident ? kTileChunkBytes : 3 * kTileChunkBytes;
  // Slabs of 64 queries: a warp has 16 of each.
  const int half = layout.split ? 0 : group;  // of the query tile
  const ThreadQueries queries{half * kGroupQueries + static_cast<int>(threadIdx.x) % kGroupThreads / 32 * 16, 64};
  Epilogue epilogue(target, operands, memory.epilogue);
  Place place;
  Place from;
  const auto release = [&](int stage) {
    if (signals) ptx::barrier_arrive(&memory.barriers->empty[stage]);
  };
  const int end = schedule.end_for(static_cast<int>(blockIdx.x));
  if (static_cast<int>(blockIdx.x) >= end) return;
  if (layout.turns && group == 1) ptx::turn_give(1, kMultipliers);
  for (int index = static_cast<int>(blockIdx.x); index < end; index += static_cast<int>(gridDim.x)) {
    const ProductItem item = schedule.item(index);
    epilogue.begin(int64_t{item.query_tile} * kQueryTile, queries, int64_t{item.first_tile} * kOperandTile);
    if (layout.resident) ptx::barrier_wait(&memory.barriers->queries_full[from.at], from.parity);
    for (int tile = item.first_tile; tile < item.end_tile; ++tile) {
      if (layout.split && tile / 2 % kGroups != group) {  // the other's
        for (int chunk = 0; chunk < chunks; ++chunk) place.advance(layout.stages);
        continue;
      }
      Slabs<Acc> products;
      if (layout.turns) ptx::turn_wait(1 + group, kMultipliers);
      int last_stage = 0;
      const auto multiply = [&]<int kSteps>(int chunk, std::integral_constant<int, kSteps>) {
        ptx::barrier_wait(&memory.barriers->full[place.at], place.parity);
        const std::byte* const rows = memory.ring + place.at * stage_bytes;
        const std::byte* const mine =
            (layout.resident ? memory.queries + (from.at * chunks + chunk) * 2 * kTileChunkBytes
                             : rows + kTileChunkBytes) +
            half * kTileChunkBytes;
        ptx::warpgroup_fence();
        multiply_chunk<kSteps>(products, mine, rows, chunk > 0);
        ptx::warpgroup_commit();
        if (chunk > 0) {
          ptx::warpgroup_wait<1>();  // the chunk before has been read
          release(last_stage);
        }
        last_stage = place.at;
        place.advance(layout.stages);
      };
      constexpr bool kWhole = kLastSteps == kChunkSteps;
      for (int chunk = 0; chunk < (kWhole ? chunks : chunks - 1); ++chunk) {
        multiply(chunk, std::integral_constant<int, kChunkSteps>());
      }
      if constexpr (!kWhole) multiply(chunks - 1, std::integral_constant<int, kLastSteps>());
      if (layout.turns) {
        const bool last = group == 1 && tile == item.end_tile - 1 &&
                          index + static_cast<int>(gridDim.x) >= end;  // no one is waiting any more
        if (!last) ptx::turn_give(2 - group, kMultipliers);
      }
      ptx::warpgroup_wait<0>();
      epilogue.tile(products, vectors<const Acc>(memory.terms + last_stage * kTermBytes<Epilogue>), tile);
      __syncwarp();
      release(last_stage);
    }
    if (layout.resident && signals) ptx::barrier_arrive(&memory.barriers->queries_empty[from.at]);
    from.advance(layout.query_buffers);
    epilogue.end();
  }
}

template <typename Acc, typename Epilogue, int kLastSteps>
__global__ void __launch_bounds__(kThreads, 1) product_wgmma_kernel(ProductOperands operands, ProductSchedule schedule,
                                                                    Layout layout, typename Epilogue::Target target) {
  extern __shared__ std::byte shared[];
  BlockMemory memory;
  std::byte* next = shared + (1024 - ptx::shared_address(shared) % 1024) % 1024;
  const auto take = [&](int64_t bytes) {
    std::byte* const start = next;
    next += bytes;
    return start;
  };
  memory.queries = take(layout.resident ? layout.query_buffers * operands.chunks * 2 * kTileChunkBytes : 0);
  memory.ring = take(layout.stages * (layout.resident ? kTileChunkBytes : 3 * kTileChunkBytes));
  memory.terms = take(layout.stages * kTermBytes<Epilogue>);
  memory.barriers = vectors<Barriers>(take(512));
  memory.epilogue = next;
  static_assert(sizeof(Barriers) <= 512);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < layout.stages; ++stage) {
      ptx::barrier_init(&memory.barriers->full[stage], 1);
      ptx::barrier_init(&memory.barriers->empty[stage], (layout.split ? kGroupThreads : kMultipliers) / 32);
    }
    for (int buffer = 0; buffer < 2; ++buffer) {
      ptx::barrier_init(&memory.barriers->queries_full[buffer], 1);
      ptx::barrier_init(&memory.barriers->queries_empty[buffer], kMultipliers / 32);
    }
    ptx::barrier_init_fence();
  }
  ptx::wait_for_kernel_before();
  __syncthreads();
  if (threadIdx.x >= kMultipliers) {
    ptx::give_registers<kProducerRegisters>();
    if (threadIdx.x == kMultipliers) produce<kTermBytes<Epilogue>>(operands, schedule, layout, memory);
  } else {
    ptx::take_registers<kMultiplierRegisters>();
    consume<Acc, Epilogue, kLastSteps>(operands, schedule, layout, memory, target);
  }
}

template <typename Acc, typename Epilogue, int kLastSteps = kChunkSteps>
void launch_engine(const ProductOperands& operands, const ProductSchedule& schedule,
                   const typename Epilogue::Target& target, cudaStream_t stream) {
  if (schedule.items == 0) return;
  int device = 0;
  int multiprocessors = 0;
  KITH_CUDA_CHECK(cudaGetDevice(&device));
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  const auto kernel = product_wgmma_kernel<Acc, Epilogue, kLastSteps>;
  KITH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  const Grid grid = Grid::of(std::min(schedule.items, multiprocessors), kThreads).with_shared(kSharedBytes);
  launch(kernel, grid.chained(), stream, operands, schedule,
         layout_for<Epilogue>(operands.chunks, operands.query_count), target);
}

}  // namespace

template <typename Target>
void launch_wgmma(const ProductOperands& operands, const ProductSchedule& schedule, const Target& target,
                  cudaStream_t stream) {
  using Floats = EpilogueOf<Target, float>;
  if constexpr (std::is_same_v<Target, ProductNearest>) {  // the longest of all products, and of any columns
    switch (operands.last_steps) {
      case 1: return launch_engine<float, Floats, 1>(operands, schedule, target, stream);
      case 2: return launch_engine<float, Floats, 2>(operands, schedule, target, stream);
      case 3: return launch_engine<float, Floats, 3>(operands, schedule, target, stream);
      default: break;
    }
  } else if (operands.type == OperandType::bytes) {
    return launch_engine<int32_t, EpilogueOf<Target, int32_t>>(operands, schedule, target, stream);
  }
  if constexpr (std::is_same_v<Target, ProductMinima>) {  // few columns fill a quarter of a chunk
    if (operands.last_steps == 1) return launch_engine<float, Floats, 1>(operands, schedule, target, stream);
  }
  launch_engine<float, Floats>(operands, schedule, target, stream);
}

KITH_INSTANTIATE_PRODUCTS(launch_wgmma);

}  // namespace kith
