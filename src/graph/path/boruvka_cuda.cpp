#include "graph/path/boruvka_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "cuda/device_buffer.hpp"
#include "cuda/device_context.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_memory.hpp"
#include "graph/graph_check.hpp"
#include "graph/path/boruvka_steps_cuda.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

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
    const KnnGraph there = graph.to(MemorySpace::cuda(tree.device), resources);
    check_graph(there, resources);
    launch_take_edges(there.ids(), there.distances(), edges_, stream());
    launch_begin(edges_, arrays_, stream());
    context_->synchronize();  // the graph that was copied there goes
  }

  void find_least_edges(MergeLevel& level) override {
    resources_.check_cancelled();
    DeviceLevel& there = tree_.levels.emplace_back();
    there.parts = level.parts();
    there.memory = allocate_on_device(2 * array_bytes<uint32_t>(there.parts), "a level of the tree", tree_.device,
                                      resources_);
    parent_ = reinterpret_cast<uint32_t*>(there.memory.get());
    key_ = parent_ + there.parts;
    launch_find_least_edges(edges_, arrays_, key_, level.parts(), stream());
    touch(level);
    copy(level.key, key_);
    copy(level.near, arrays_.near);
    copy(level.far, arrays_.far);
  }

  int64_t join(MergeLevel& level) override {
    const int64_t parts = level.parts();
    launch_break_circles(arrays_, parts, stream());
    int from = 0;
    for (bool farther = true; farther; from = 1 - from) {
      launch_shorten_ways(arrays_, from, parts, stream());
      farther = flag() != 0;
    }
    launch_number_parts(arrays_, from, parent_, parts, edges_.rows, stream());
    copy(level.parent, parent_);
    copy(level.depth, arrays_.depth[from]);
    const int64_t joined = flag();
    if (joined == 0) tree_.levels.pop_back();  // nothing was joined: the last round
    return joined;
  }

 private:
  cudaStream_t stream() const { return context_->stream(); }
  void copy(const HostArray<uint32_t>& to, const uint32_t* from) const { context_->copy(to.data(), from, to.bytes()); }
  // Lets the system find pages for the level on all threads, while the device works: one by one, under a copy, that takes
  // longer than the copy.
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
    context_->copy(&value, arrays_.flag, sizeof value);
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
  uint32_t* parent_ = nullptr;
  uint32_t* key_ = nullptr;
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
  for (const DeviceLevel& level : tree.levels) {
    const auto* const parent = reinterpret_cast<const uint32_t*>(level.memory.get());
    levels.push_back({parent, parent + level.parts});
  }
  const int64_t piece = std::min(count, kPairsAtOnce);
  const auto refs = static_cast<int64_t>(levels.size() * sizeof(DeviceLevelRef));
  const DeviceBuffer device_levels(refs, "levels of the tree", context, resources);
  const DeviceBuffer device_pairs(array_bytes<int64_t>(2 * piece), "pairs of rows", context, resources);
  const DeviceBuffer device_widths(array_bytes<float>(piece), "widths", context, resources);
  context->copy(device_levels.data(), levels.data(), refs);
  for (int64_t first = 0; first < count; first += piece) {
    resources.check_cancelled();
    const int64_t some = std::min(piece, count - first);
    context->copy(device_pairs.data(), pairs + 2 * first, array_bytes<int64_t>(2 * some));
    launch_widths(reinterpret_cast<const DeviceLevelRef*>(device_levels.data()), static_cast<int64_t>(levels.size()),
                  reinterpret_cast<const int64_t*>(device_pairs.data()), some,
                  reinterpret_cast<float*>(device_widths.data()), context->stream());
    context->copy(out + first, device_widths.data(), array_bytes<float>(some));
    context->synchronize();
  }
}

}  // namespace kith
