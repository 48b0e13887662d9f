// Boruvka's rounds on a GPU.
//
// An edge is kept with the row that names it, and offered to the parts of both its ends: by a minimum of keys, then by
// one of the pairs of rows among edges with that key. Neither depends on who comes first. Most offers lose against a
// plain read of what is there, and need no atomic. A thread has a row; the rows' first edges lie side by side, then
// their second ones, so that a warp reads them together. What no longer leaves a row's part is dropped, and what is
// left moves up.
#include "paths/boruvka.hpp"

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_context.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/workspace_layout.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/handle/graph_output.hpp"

#include <cub/device/device_scan.cuh>

#include <algorithm>

namespace kith {
namespace {

// A graph's edges, k x rows: the j-th of a row at [j * rows + row]. A row has `count` of them left.
struct DeviceEdges {
  uint32_t* to = nullptr;
  uint32_t* key = nullptr;    // core/ordered_key.hpp
  uint32_t* other = nullptr;  // the part of `to`, in this round
  uint32_t* count = nullptr;
  int64_t rows = 0;
  int64_t k = 0;
};

// What a round works on.
struct BoruvkaArrays {
  uint32_t* part = nullptr;  // of each row, or kNoPart
  uint64_t* pair = nullptr;  // of each part, as all that follows: the rows of its least edge, the smaller one above
  uint32_t* near = nullptr;  // as in MergeLevel
  uint32_t* far = nullptr;
  uint32_t* next = nullptr;  // the part that its edge leads to
  uint32_t* above[2] = {};   // by doubling: a part farther on its way, and how far
  uint32_t* depth[2] = {};
  uint32_t* stays = nullptr;   // 1, or 0 also where nothing leaves it
  uint32_t* number = nullptr;  // of the parts that stay, in their order
  void* scan = nullptr;        // memory for that
  size_t scan_bytes = 0;
  uint32_t* flag = nullptr;  // one value, for the host
};

// Where they lie in one block of memory.
struct BoruvkaLayout : WorkspaceLayout {
  BoruvkaLayout(int64_t row_count, int64_t neighbors);
  DeviceEdges edges(std::byte* memory) const;
  BoruvkaArrays arrays(std::byte* memory) const;

  int64_t rows, k;
  Slot<uint32_t> to, key, other, count, part;
  Slot<uint64_t> pair;
  Slot<uint32_t> near, far, next, above[2], depth[2], stays, number;
  Slot<std::byte> scan;
  Slot<uint32_t> flag;
};

// A level of the tree, for widths.
struct DeviceLevelRef {
  const uint32_t* parent = nullptr;
  const uint32_t* key = nullptr;
};
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
      to[c][r] =
          id >= 0 && id < edges.rows ? static_cast<uint32_t>(id) : kNone;  // though its owner has changed it since
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

// Drops each row's edges that do not leave its part, and offers the least of the others to that part. This comes first,
// as it is what most offers to the other ends lose against.
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

__global__ void __launch_bounds__(kThreads)
    parents_kernel(BoruvkaArrays arrays, int from, uint32_t* parent, int64_t parts) {
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

constexpr int64_t kPairsAtOnce = int64_t{1} << 22;
constexpr int64_t kTouchedParts = int64_t{1} << 18;

class BoruvkaCuda : public BoruvkaBackend {
 public:
  BoruvkaCuda(const KnnGraph& graph, DeviceMergeTree& tree, const Resources& resources)
      : tree_(tree),
        resources_(resources),
        guard_(tree.device),
        context_(std::make_shared<const DeviceContext>(tree.device, resources.options().stream)),
        layout_(graph.rows(), graph.k()),
        memory_(layout_.bytes, "Boruvka's rounds", context_, resources),
        edges_(layout_.edges(memory_.data())),
        arrays_(layout_.arrays(memory_.data())) {
    const KnnGraph there = graph_in(MemorySpace::cuda(tree.device), graph, resources);
    check_graph(there, resources);
    launch(take_edges_kernel, Grid::of(divide_up(edges_.rows, kTileRows), kThreads), stream(), there.ids(),
           there.distances(), edges_);
    launch(begin_kernel, Grid::over(edges_.rows, kThreads), stream(), edges_, arrays_.part);
    context_->synchronize();  // the graph that was copied there goes
  }

  void find_least_edges(MergeLevel& level) override {
    resources_.check_cancelled();
    const int64_t parts = level.parts();
    const DeviceLevel& there = add_level(parts);
    const Grid by_rows = Grid::over(edges_.rows, kThreads);
    launch(no_edges_kernel, Grid::over(parts, kThreads), stream(), there.keys(), arrays_.pair, parts);
    launch(own_keys_kernel, by_rows, stream(), edges_, arrays_, there.keys());
    launch(others_keys_kernel, by_rows, stream(), edges_, there.keys());
    launch(pairs_kernel, by_rows, stream(), edges_, arrays_, there.keys());
    launch(ends_kernel, Grid::over(parts, kThreads), stream(), arrays_, there.keys(), parts);
    touch(level);
    copy(level.key, there.keys());
    copy(level.near, arrays_.near);
    copy(level.far, arrays_.far);
  }

  void count_round(const MergeLevel& level) override { add_level(level.parts()); }

  int64_t join(MergeLevel& level) override {
    const int64_t parts = level.parts();
    const Grid by_parts = Grid::over(parts, kThreads);
    launch(break_circles_kernel, by_parts, stream(), arrays_, parts);
    int from = 0;
    for (bool farther = true; farther; from = 1 - from) {  // from above[from] and depth[from] to the others
      context_->fill(arrays_.flag, 0, 1);
      launch(shorten_kernel, by_parts, stream(), arrays_, from, parts);
      farther = flag() != 0;
    }
    uint32_t* const parents = tree_.levels.back().parents.get();
    size_t bytes = arrays_.scan_bytes;
    KITH_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(arrays_.scan, bytes, arrays_.stays, arrays_.number,
                                                  static_cast<int>(parts), stream()));
    launch(parents_kernel, by_parts, stream(), arrays_, from, parents, parts);
    launch(relabel_kernel, Grid::over(edges_.rows, kThreads), stream(), arrays_.part, parents, edges_.rows);
    copy(level.parent, parents);
    copy(level.depth, arrays_.depth[from]);
    const int64_t joined = flag();
    if (joined == 0) tree_.levels.pop_back();  // nothing was joined: the last round
    return joined;
  }

 private:
  cudaStream_t stream() const { return context_->stream(); }
  const DeviceLevel& add_level(int64_t parts) {
    const auto memory =
        allocate_on_device(2 * array_bytes<uint32_t>(parts), "a level of the tree", tree_.device, resources_);
    return tree_.levels.emplace_back(DeviceLevel{{memory, reinterpret_cast<uint32_t*>(memory.get())}, parts});
  }
  void copy(const HostArray<uint32_t>& to, const uint32_t* from) const {
    context_->copy_values(to.data(), from, to.size());
  }
  // Lets the system find pages for the level on all threads, while the device works: one by one, under a copy, that
  // takes longer than the copy.
  void touch(const MergeLevel& level) const {
    if (level.parts() < kTouchedParts) return;
    const HostArray<uint32_t>* const arrays[] = {&level.parent, &level.key, &level.near, &level.far, &level.depth};
    const int64_t pieces = divide_up(level.parts(), kTouchedParts);
    const Resources quiet = resources_.with_progress({});
    ProgressMeter meter("join rows", 0, quiet);
    parallel_for(5 * pieces, meter, quiet, [&](int64_t task, int) {
      uint32_t* const values = arrays[task / pieces]->data();
      const int64_t first = task % pieces * kTouchedParts;
      std::fill(values + first, values + std::min(first + kTouchedParts, level.parts()), 0u);
    });
  }
  // Waits for all that was enqueued.
  uint32_t flag() const {
    uint32_t value = 0;
    context_->copy_values(&value, arrays_.flag, 1);
    context_->synchronize();
    return value;
  }

  DeviceMergeTree& tree_;
  const Resources resources_;
  DeviceGuard guard_;
  std::shared_ptr<const DeviceContext> context_;
  BoruvkaLayout layout_;
  DeviceBuffer memory_;
  DeviceEdges edges_;
  BoruvkaArrays arrays_;
};

}  // namespace

std::unique_ptr<BoruvkaBackend> make_boruvka_cuda(const KnnGraph& graph, DeviceMergeTree& tree,
                                                  const Resources& resources) {
  return std::make_unique<BoruvkaCuda>(graph, tree, resources);
}

void widths_cuda(const DeviceMergeTree& tree, const int64_t* pairs, int64_t count, float* out,
                 const Resources& resources) {
  const DeviceGuard guard(tree.device);
  const auto context = std::make_shared<const DeviceContext>(tree.device, resources.options().stream);
  std::vector<DeviceLevelRef> levels;
  for (const DeviceLevel& level : tree.levels) levels.push_back({level.parents.get(), level.keys()});
  const int64_t piece = std::min(count, kPairsAtOnce);
  const auto level_count = static_cast<int64_t>(levels.size());
  const DeviceArray<DeviceLevelRef> device_levels(level_count, "levels of the tree", context, resources);
  const DeviceArray<int64_t> device_pairs(2 * piece, "pairs of rows", context, resources);
  const DeviceArray<float> device_widths(piece, "widths", context, resources);
  context->copy_values(device_levels.data(), levels.data(), level_count);
  for (int64_t first = 0; first < count; first += piece) {
    resources.check_cancelled();
    const int64_t some = std::min(piece, count - first);
    context->copy_values(device_pairs.data(), pairs + 2 * first, 2 * some);
    launch(widths_kernel, Grid::over(some, kThreads), context->stream(), device_levels.data(), level_count,
           device_pairs.data(), some, device_widths.data());
    context->copy_values(out + first, device_widths.data(), some);
    context->synchronize();
  }
}

}  // namespace kith
