#include "paths/boruvka_steps_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"

#include <cub/device/device_scan.cuh>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr uint32_t kNone = 0xFFFFFFFFu;
constexpr uint64_t kNoPair = ~uint64_t{0};

__device__ inline int64_t thread_number() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }

// A read past the first-level cache, where others' atomics do not arrive.
__device__ inline void lower(uint32_t* place, uint32_t value) {
  if (value < __ldcg(place)) atomicMin(place, value);
}
__device__ inline void lower(uint64_t* place, uint64_t value) {
  auto* const wide = reinterpret_cast<unsigned long long*>(place);
  if (value < __ldcg(wide)) atomicMin(wide, static_cast<unsigned long long>(value));
}

__device__ inline uint64_t pair_of(uint32_t a, uint32_t b) {
  return static_cast<uint64_t>(min(a, b)) << 32 | max(a, b);
}

// Reads along rows and writes along columns, through a tile of shared memory.
constexpr int kTileRows = 64;
constexpr int kTileCols = 32;

__global__ void __launch_bounds__(kThreads)
    take_edges_kernel(const int64_t* ids, const float* distances, DeviceEdges edges) {
  __shared__ uint32_t to[kTileCols][kTileRows + 1];
  __shared__ uint32_t key[kTileCols][kTileRows + 1];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTileRows;
  const int rows = static_cast<int>(min(static_cast<int64_t>(kTileRows), edges.rows - first));
  for (int64_t col = 0; col < edges.k; col += kTileCols) {
    const int cols = static_cast<int>(min(static_cast<int64_t>(kTileCols), edges.k - col));
    for (int i = static_cast<int>(threadIdx.x); i < rows * cols; i += kThreads) {
      const int r = i / cols;
      const int c = i % cols;
      const int64_t e = (first + r) * edges.k + col + c;
      const int64_t id = ids[e];
      to[c][r] = id >= 0 && id < edges.rows ? static_cast<uint32_t>(id) : kNone;  // though its owner has changed it since
      key[c][r] = ordered_key(distances[e]);
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows * cols; i += kThreads) {
      const int r = i % kTileRows;
      const int c = i / kTileRows;
      if (r >= rows) continue;
      edges.to[(col + c) * edges.rows + first + r] = to[c][r];
      edges.key[(col + c) * edges.rows + first + r] = key[c][r];
    }
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads) begin_kernel(DeviceEdges edges, uint32_t* part) {
  const int64_t row = thread_number();
  if (row >= edges.rows) return;
  part[row] = static_cast<uint32_t>(row);
  int64_t count = 0;  // nobody stands at the end
  while (count < edges.k && edges.to[count * edges.rows + row] != kNone) ++count;
  edges.count[row] = static_cast<uint32_t>(count);
}

__global__ void __launch_bounds__(kThreads) no_edges_kernel(uint32_t* key, uint64_t* pair, int64_t parts) {
  const int64_t part = thread_number();
  if (part >= parts) return;
  key[part] = kNone;
  pair[part] = kNoPair;
}

// Drops each row's edges that do not leave its part, and offers the least of the others to that part. This comes first, as
// it is what most offers to the other ends lose against.
__global__ void __launch_bounds__(kThreads) own_keys_kernel(DeviceEdges edges, BoruvkaArrays arrays, uint32_t* best) {
  const int64_t row = thread_number();
  if (row >= edges.rows) return;
  const uint32_t count = edges.count[row];
  const uint32_t mine = arrays.part[row];
  uint32_t least = kNone;
  uint32_t left = 0;
  for (uint32_t j = 0; j < count; ++j) {
    const int64_t e = j * edges.rows + row;
    const uint32_t to = edges.to[e];
    const uint32_t other = arrays.part[to];
    if (other == mine) continue;
    const uint32_t key = edges.key[e];
    const int64_t place = left * edges.rows + row;
    if (left < j) {
      edges.to[place] = to;
      edges.key[place] = key;
    }
    edges.other[place] = other;
    least = min(least, key);
    ++left;
  }
  if (left < count) edges.count[row] = left;
  if (left > 0) lower(best + mine, least);
}

__global__ void __launch_bounds__(kThreads) others_keys_kernel(DeviceEdges edges, uint32_t* best) {
  const int64_t row = thread_number();
  if (row >= edges.rows) return;
  const uint32_t count = edges.count[row];
  for (uint32_t j = 0; j < count; ++j) {
    const int64_t e = j * edges.rows + row;
    lower(best + edges.other[e], edges.key[e]);
  }
}

__global__ void __launch_bounds__(kThreads)
    pairs_kernel(DeviceEdges edges, BoruvkaArrays arrays, const uint32_t* best) {
  const int64_t row = thread_number();
  if (row >= edges.rows) return;
  const uint32_t count = edges.count[row];
  const uint32_t mine = arrays.part[row];
  const uint32_t least = best[mine];
  for (uint32_t j = 0; j < count; ++j) {
    const int64_t e = j * edges.rows + row;
    const uint32_t key = edges.key[e];
    const uint32_t other = edges.other[e];
    const bool of_other = key == best[other];
    if (key != least && !of_other) continue;
    const uint64_t pair = pair_of(static_cast<uint32_t>(row), edges.to[e]);
    if (key == least) lower(arrays.pair + mine, pair);
    if (of_other) lower(arrays.pair + other, pair);
  }
}

__global__ void __launch_bounds__(kThreads) ends_kernel(BoruvkaArrays arrays, const uint32_t* key, int64_t parts) {
  const int64_t part = thread_number();
  if (part >= parts) return;
  const uint64_t pair = arrays.pair[part];
  const auto smaller = static_cast<uint32_t>(pair >> 32);
  const auto larger = static_cast<uint32_t>(pair);
  const bool none = key[part] == kNone;
  const bool in_order = none || arrays.part[smaller] == part;
  const uint32_t far = in_order ? larger : smaller;
  arrays.near[part] = in_order ? smaller : larger;
  arrays.far[part] = far;
  arrays.next[part] = none ? static_cast<uint32_t>(part) : arrays.part[far];
}

// Two parts that took the same edge would go round in a circle: the smaller one stays, and no other circle can be.
__global__ void __launch_bounds__(kThreads) break_circles_kernel(BoruvkaArrays arrays, int64_t parts) {
  const int64_t part = thread_number();
  if (part >= parts) return;
  const uint32_t next = arrays.next[part];
  const bool done = next == part;
  const bool stays = done || (arrays.next[next] == part && part < next);
  arrays.above[0][part] = stays ? static_cast<uint32_t>(part) : next;
  arrays.depth[0][part] = stays ? 0 : 1;
  arrays.stays[part] = stays && !done ? 1 : 0;
}

__global__ void __launch_bounds__(kThreads) shorten_kernel(BoruvkaArrays arrays, int from, int64_t parts) {
  const int64_t part = thread_number();
  if (part >= parts) return;
  const uint32_t above = arrays.above[from][part];
  const uint32_t further = arrays.above[from][above];
  arrays.above[1 - from][part] = further;
  arrays.depth[1 - from][part] = arrays.depth[from][part] + arrays.depth[from][above];
  if (further != above) *arrays.flag = 1;
}

__global__ void __launch_bounds__(kThreads) parents_kernel(BoruvkaArrays arrays, int from, uint32_t* parent,
                                                           int64_t parts) {
  const int64_t part = thread_number();
  if (part >= parts) return;
  parent[part] = arrays.next[part] == part ? kNone : arrays.number[arrays.above[from][part]];
  if (part == parts - 1) *arrays.flag = arrays.number[part] + arrays.stays[part];
}

__global__ void __launch_bounds__(kThreads) relabel_kernel(uint32_t* part, const uint32_t* parent, int64_t rows) {
  const int64_t row = thread_number();
  if (row >= rows || part[row] == kNone) return;
  part[row] = parent[part[row]];
}

__global__ void __launch_bounds__(kThreads) widths_kernel(const DeviceLevelRef* levels, int64_t level_count,
                                                          const int64_t* pairs, int64_t count, float* widths) {
  const int64_t i = thread_number();
  if (i >= count) return;
  auto a = static_cast<uint32_t>(pairs[2 * i]);
  auto b = static_cast<uint32_t>(pairs[2 * i + 1]);
  constexpr uint32_t kInfinite = 0xFF800000u;  // ordered_key(+inf)
  uint32_t largest = a == b ? ordered_key(0.0f) : 0;
  for (int64_t level = 0; level < level_count && a != b; ++level) {
    largest = max(largest, max(levels[level].key[a], levels[level].key[b]));
    if (largest == kNone) break;  // one of them is done
    a = levels[level].parent[a];
    b = levels[level].parent[b];
  }
  widths[i] = key_of_ordered(a == b ? largest : kInfinite);
}

int64_t scan_memory(int64_t rows) {
  size_t bytes = 0;
  KITH_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, static_cast<const uint32_t*>(nullptr),
                                                static_cast<uint32_t*>(nullptr), static_cast<int>(rows)));
  return static_cast<int64_t>(bytes);
}

}  // namespace

BoruvkaLayout::BoruvkaLayout(int64_t row_count, int64_t neighbors)
    : rows(row_count),
      k(neighbors),
      to(take<uint32_t>(rows, k)),
      key(take<uint32_t>(rows, k)),
      other(take<uint32_t>(rows, k)),
      count(take<uint32_t>(rows)),
      part(take<uint32_t>(rows)),
      pair(take<uint64_t>(rows)),
      near(take<uint32_t>(rows)),
      far(take<uint32_t>(rows)),
      next(take<uint32_t>(rows)),
      above{take<uint32_t>(rows), take<uint32_t>(rows)},
      depth{take<uint32_t>(rows), take<uint32_t>(rows)},
      stays(take<uint32_t>(rows)),
      number(take<uint32_t>(rows)),
      scan(take<std::byte>(scan_memory(rows))),
      flag(take<uint32_t>(1)) {}

DeviceEdges BoruvkaLayout::edges(std::byte* memory) const {
  return {to.in(memory), key.in(memory), other.in(memory), count.in(memory), rows, k};
}

BoruvkaArrays BoruvkaLayout::arrays(std::byte* memory) const {
  return {part.in(memory),
          pair.in(memory),
          near.in(memory),
          far.in(memory),
          next.in(memory),
          {above[0].in(memory), above[1].in(memory)},
          {depth[0].in(memory), depth[1].in(memory)},
          stays.in(memory),
          number.in(memory),
          scan.in(memory),
          static_cast<size_t>(scan.bytes()),
          flag.in(memory)};
}

void launch_take_edges(const int64_t* ids, const float* distances, const DeviceEdges& edges, cudaStream_t stream) {
  launch(take_edges_kernel, Grid::of(divide_up(edges.rows, kTileRows), kThreads), stream, ids, distances, edges);
}

void launch_begin(const DeviceEdges& edges, const BoruvkaArrays& arrays, cudaStream_t stream) {
  launch(begin_kernel, Grid::over(edges.rows, kThreads), stream, edges, arrays.part);
}

void launch_find_least_edges(const DeviceEdges& edges, const BoruvkaArrays& arrays, uint32_t* key, int64_t parts,
                             cudaStream_t stream) {
  const Grid by_rows = Grid::over(edges.rows, kThreads);
  launch(no_edges_kernel, Grid::over(parts, kThreads), stream, key, arrays.pair, parts);
  launch(own_keys_kernel, by_rows, stream, edges, arrays, key);
  launch(others_keys_kernel, by_rows, stream, edges, key);
  launch(pairs_kernel, by_rows, stream, edges, arrays, key);
  launch(ends_kernel, Grid::over(parts, kThreads), stream, arrays, key, parts);
}

void launch_break_circles(const BoruvkaArrays& arrays, int64_t parts, cudaStream_t stream) {
  launch(break_circles_kernel, Grid::over(parts, kThreads), stream, arrays, parts);
}

void launch_shorten_ways(const BoruvkaArrays& arrays, int from, int64_t parts, cudaStream_t stream) {
  KITH_CUDA_CHECK(cudaMemsetAsync(arrays.flag, 0, sizeof(uint32_t), stream));
  launch(shorten_kernel, Grid::over(parts, kThreads), stream, arrays, from, parts);
}

void launch_number_parts(const BoruvkaArrays& arrays, int from, uint32_t* parent, int64_t parts, int64_t rows,
                         cudaStream_t stream) {
  size_t bytes = arrays.scan_bytes;
  KITH_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(arrays.scan, bytes, arrays.stays, arrays.number,
                                                static_cast<int>(parts), stream));
  launch(parents_kernel, Grid::over(parts, kThreads), stream, arrays, from, parent, parts);
  launch(relabel_kernel, Grid::over(rows, kThreads), stream, arrays.part, parent, rows);
}

void launch_widths(const DeviceLevelRef* levels, int64_t level_count, const int64_t* pairs, int64_t count, float* widths,
                   cudaStream_t stream) {
  launch(widths_kernel, Grid::over(count, kThreads), stream, levels, level_count, pairs, count, widths);
}

}  // namespace kith
