#include "graph/search/build/mend_places_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"
#include "cuda/warp.hpp"
#include "graph/search/walk/compare_codes_cuda.hpp"

namespace kith {
namespace {

constexpr int kPartThreads = 256;
constexpr int kLostWarps = 8;
constexpr int kLostThreads = 32 * kLostWarps;

KITH_DEVICE_INLINE int64_t thread_number() { return static_cast<int64_t>(blockIdx.x) * kPartThreads + threadIdx.x; }

__global__ void alone_kernel(uint32_t* parts, int64_t places) {
  const int64_t i = thread_number();
  if (i < places) parts[i] = static_cast<uint32_t>(i);
}

// Where the parents of a place lead. What others write meanwhile is nearer to the end of the same way.
KITH_DEVICE_INLINE uint32_t root_of(uint32_t* parts, uint32_t place) {
  auto* const parents = const_cast<volatile uint32_t*>(parts);
  uint32_t parent = parents[place];
  while (parent != place) {
    const uint32_t next = parents[parent];
    if (next != parent) parents[place] = next;
    place = parent;
    parent = next;
  }
  return place;
}

// A root gets a smaller root as its parent, so that in the end a component's root is its smallest place, in any order.
__global__ void join_kernel(const uint32_t* edges, int64_t places, int64_t degree, uint32_t* parts) {
  const int64_t i = thread_number();
  if (i >= places * degree || edges[i] == kNoEdge) return;
  uint32_t a = root_of(parts, static_cast<uint32_t>(i / degree));
  uint32_t b = root_of(parts, edges[i]);
  while (a != b) {
    const uint32_t larger = max(a, b);
    const uint32_t smaller = min(a, b);
    const uint32_t before = atomicCAS(parts + larger, larger, smaller);
    if (before == larger) return;
    a = root_of(parts, before);
    b = root_of(parts, smaller);
  }
}

__global__ void point_to_roots_kernel(uint32_t* parts, int64_t places) {
  const int64_t i = thread_number();
  if (i >= places) return;
  uint32_t root = static_cast<uint32_t>(i);
  while (parts[root] != root) root = parts[root];
  parts[i] = root;
}

// The key of two places by products. By a warp.
KITH_DEVICE_INLINE uint32_t product_key(const CodesCuda& codes, uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (int chunk = lane_index(); chunk < codes.chunks; chunk += 32) {
    sum += static_cast<uint32_t>(multiply_bytes(__ldg(codes.code(a) + chunk), __ldg(codes.code(b) + chunk)));
  }
  return (0U - warp_sum(sum)) ^ kSignBit;
}

__global__ void __launch_bounds__(kLostThreads)
    lost_kernel(const __grid_constant__ WalkTaskCuda task, LostPlace* lost, uint32_t* count) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kLostWarps + threadIdx.x / 32;
  if (query >= task.queries.count) return;
  const auto place = static_cast<uint32_t>(task.queries.stored(query));
  const uint32_t* const found = task.found + query * task.most;
  const auto size = static_cast<int>(task.found_count[query]);
  bool there = false;
  for (int i = lane_index(); i < size; i += 32) there = there || found[i] == place;
  if (__any_sync(kAllLanes, there)) return;
  // By products a place need not be near to itself: then it would not enter the beam.
  if (task.kind == WalkKind::products && size == task.beam) {
    const CodesCuda codes{task.codes, static_cast<int>(task.stride / 16)};
    const uint32_t last = found[size - 1];
    const uint64_t own = pack_neighbor(product_key(codes, place, place), place);
    if (own >= pack_neighbor(product_key(codes, place, last), last)) return;
  }
  if (lane_index() != 0) return;
  LostPlace one{.place = place};
  one.count = min(static_cast<int64_t>(size), kNearLost);
  for (int i = 0; i < one.count; ++i) one.near[i] = found[i];
  lost[atomicAdd(count, 1U)] = one;
}

__global__ void replace_kernel(const uint32_t* places, const uint32_t* lists, int64_t count, int64_t degree,
                               uint32_t* edges) {
  const int64_t i = thread_number();
  if (i >= count * degree) return;
  edges[int64_t{places[i / degree]} * degree + i % degree] = lists[i];
}

}  // namespace

void launch_connected_parts(const uint32_t* edges, int64_t places, int64_t degree, uint32_t* parts,
                            cudaStream_t stream) {
  launch(alone_kernel, Grid::over(places, kPartThreads), stream, parts, places);
  launch(join_kernel, Grid::over(places * degree, kPartThreads), stream, edges, places, degree, parts);
  launch(point_to_roots_kernel, Grid::over(places, kPartThreads), stream, parts, places);
}

void launch_lost_places(const WalkTaskCuda& task, LostPlace* lost, uint32_t* count, cudaStream_t stream) {
  const Grid by_warps = Grid::over(task.queries.count, kLostWarps);
  launch(lost_kernel, Grid::of(by_warps.blocks.x, kLostThreads), stream, task, lost, count);
}

void launch_replace_lists(const uint32_t* places, const uint32_t* lists, int64_t count, int64_t degree, uint32_t* edges,
                          cudaStream_t stream) {
  launch(replace_kernel, Grid::over(count * degree, kPartThreads), stream, places, lists, count, degree, edges);
}

}  // namespace kith
