// Walks on a GPU (walk.hpp says what they find; this finds the same). A block has one query: from its values to its
// code, the nearest cells, their entries, and step after step until all places of the beam were opened. The host is not
// asked on the way.
//
// Steps wait for memory while other blocks, or as many warps as a block may have, are at work (walk_steps_cuda.hpp), or
// look ahead (walk_ahead_cuda.hpp): walk_form() chooses.
#include "graph/search/walk/walk_cuda.hpp"

#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/search/walk/walk_ahead_cuda.hpp"
#include "graph/search/walk/walk_steps_cuda.hpp"

#include <cuda_runtime.h>

namespace kith {
namespace {

// The walk of a block: kHeld entries of the beam in each lane of a warp that looks ahead; 0: none does.
template <int kWarps, int kHeld, bool kPacked>
struct WalkOf {
  using Type = WalkAhead<kWarps, kHeld, kPacked>;
};
template <int kWarps, bool kPacked>
struct WalkOf<kWarps, 0, kPacked> {
  using Type = WalkSteps<kWarps, kPacked>;
};

// Blocks that a multiprocessor has room for.
constexpr int walk_blocks(int warps, int held) {
  if (warps > 4) return 1;
  if (held > 0) return warps == 4 ? 6 : 8;
  return warps <= 2 ? 24 / warps : 1;
}

template <int kWarps, int kHeld, bool kPacked>
__global__ void __launch_bounds__(kWarps * 32, walk_blocks(kWarps, kHeld))
    walk_kernel(const __grid_constant__ WalkTaskCuda task, const __grid_constant__ InlineQueries given) {
  extern __shared__ __align__(16) std::byte memory[];
  __shared__ WalkCounts counts;
  const DeviceRowsView queries = given.rows(task.queries);
  typename WalkOf<kWarps, kHeld, kPacked>::Type(task, memory, counts).run(queries, blockIdx.x);
}

template <int kWarps, int kHeld, bool kPacked>
void launch_kernel(const WalkTaskCuda& task, const InlineQueries& given, cudaStream_t stream) {
  auto* const kernel = walk_kernel<kWarps, kHeld, kPacked>;
  allow_all_shared_memory(kernel);
  Grid grid = Grid::of(task.queries.count, kWarps * 32).with_shared(task.layout.bytes);
  if (task.near_cells != nullptr) grid = grid.chained();
  launch(kernel, grid, stream, task, given);
}

template <int kWarps, int kHeld>
void launch_coded(const WalkTaskCuda& task, const InlineQueries& given, cudaStream_t stream) {
  if (task.packed) return launch_kernel<kWarps, kHeld, true>(task, given, stream);
  launch_kernel<kWarps, kHeld, false>(task, given, stream);
}

template <int kWarps>
void launch_with(bool ahead, const WalkTaskCuda& task, const InlineQueries& given, cudaStream_t stream) {
  if constexpr (kWarps >= 2 && kWarps <= kWalkAheadWarps) {
    if (ahead && task.beam <= 64) return launch_coded<kWarps, 2>(task, given, stream);
    if (ahead) return launch_coded<kWarps, 4>(task, given, stream);
  }
  launch_coded<kWarps, 0>(task, given, stream);
}

}  // namespace

void launch_walks(WalkTaskCuda task, const InlineQueries& given, const WalkForm& form, cudaStream_t stream) {
  if (task.near_cells != nullptr) launch_rank_cells(task, given, stream);
  task.seen = form.seen(task);
  task.layout = form.layout(task);
  task.ahead = walk_lists_ahead(form.warps);
  switch (form.warps) {
    case 1: return launch_with<1>(form.ahead, task, given, stream);
    case 2: return launch_with<2>(form.ahead, task, given, stream);
    case 4: return launch_with<4>(form.ahead, task, given, stream);
    case 8: return launch_with<8>(form.ahead, task, given, stream);
    default: return launch_with<kWalkMostWarps>(form.ahead, task, given, stream);
  }
}

}  // namespace kith
