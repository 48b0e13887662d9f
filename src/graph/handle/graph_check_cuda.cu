#include "graph/handle/graph_check.hpp"

#include "core/divide.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "kernels/select/device_warp_cuda.hpp"

#include <algorithm>
#include <memory>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int64_t kBlockBytes = int64_t{48} << 10;  // of shared memory, where more than one warp fits

struct GivenRows {
  const int64_t* ids;
  const float* distances;
  int64_t rows;
  int64_t k;
  bool larger_is_nearer;
};

// Whether it is there already.
__device__ bool enters_twice(int32_t* table, int bits, int32_t id) {
  const uint32_t mask = (1u << bits) - 1;
  for (uint32_t place = (static_cast<uint32_t>(id) * 0x9E3779B1u) >> (32 - bits);; place = (place + 1) & mask) {
    const int32_t there = atomicCAS(table + place, -1, id);
    if (there == -1) return false;
    if (there == id) return true;
  }
}

__device__ bool breaks_a_rule(const GivenRows& graph, int64_t row, int64_t j, int64_t id) {
  const int64_t at = row * graph.k + j;
  if (id < 0 || id >= graph.rows || id == row) return true;
  if (j > 0 && graph.ids[at - 1] == -1) return true;
  const float distance = graph.distances[at];
  if (isnan(distance)) return true;
  if (j == 0) return false;
  const float before = graph.distances[at - 1];
  return graph.larger_is_nearer ? before < distance : before > distance;
}

// A warp has a hash table of 1 << bits places, at least twice the number of neighbours.
__global__ void __launch_bounds__(kThreads) check_kernel(GivenRows graph, int bits, unsigned long long* first) {
  extern __shared__ int32_t memory[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * warps + warp;
  if (row >= graph.rows) return;
  int32_t* const table = memory + (static_cast<int64_t>(warp) << bits);
  for (int i = lane_index(); i < 1 << bits; i += 32) table[i] = -1;
  __syncwarp();
  bool wrong = false;
  for (int64_t j = lane_index(); j < graph.k && !wrong; j += 32) {
    const int64_t id = graph.ids[row * graph.k + j];
    if (id == -1) continue;
    wrong = breaks_a_rule(graph, row, j, id) || enters_twice(table, bits, static_cast<int32_t>(id));
  }
  if (__any_sync(kAllLanes, wrong) && lane_index() == 0) atomicMin(first, static_cast<unsigned long long>(row));
}

}  // namespace

int64_t first_wrong_row_cuda(const KnnGraph& graph, const Resources& resources) {
  if (graph.rows() == 0 || graph.k() == 0) return graph.rows();
  int bits = 5;
  while ((int64_t{1} << bits) < 2 * graph.k()) ++bits;
  const int64_t warp_bytes = int64_t{4} << bits;
  const int64_t warps = std::clamp<int64_t>(kBlockBytes / warp_bytes, 1, kWarps);
  const DeviceGuard guard(graph.space().device);
  const auto context = std::make_shared<const DeviceContext>(graph.space().device, resources.options().stream);
  const DeviceArray<unsigned long long> found(1, "the first wrong row", context, resources);
  auto first = static_cast<unsigned long long>(graph.rows());
  context->copy_values(found.data(), &first, 1);
  const GivenRows rows{graph.ids(), graph.distances(), graph.rows(), graph.k(), larger_is_nearer(graph.metric())};
  allow_all_shared_memory(check_kernel);
  launch(check_kernel, Grid::of(divide_up(rows.rows, warps), 32 * warps).with_shared(warps * warp_bytes),
         context->stream(), rows, bits, found.data());
  context->copy_values(&first, found.data(), 1);
  context->synchronize();
  return static_cast<int64_t>(first);
}

}  // namespace kith
