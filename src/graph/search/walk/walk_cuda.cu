// Walks on a GPU, with the results that walk.hpp defines. A block walks for one query: it encodes the query, finds the
// nearest cells, offers their entries, and takes steps until all places of the beam are opened, without the
// host.
//
// Steps either hide memory latency by other blocks and warps (walk_steps_cuda.hpp), or compare lists ahead
// (walk_ahead_cuda.hpp): walk_form() chooses.
#include "graph/search/walk/walk_cuda.hpp"

#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/search/walk/walk_ahead_cuda.hpp"
#include "graph/search/walk/walk_steps_cuda.hpp"

#include <cuda_runtime.h>

namespace kith {
namespace {

// The walk of a block. kHeld: beam entries per lane of the warp that compares ahead; 0: plain steps.
template <int kWarps, int kHeld, bool kPacked>
struct WalkOf {
  using Type = WalkAhead<kWarps, kHeld, kPacked>;
};
template <int kWarps, bool kPacked>
struct WalkOf<kWarps, 0, kPacked> {
  using Type = WalkSteps<kWarps, kPacked>;
};

// Blocks that fit a multiprocessor.
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
