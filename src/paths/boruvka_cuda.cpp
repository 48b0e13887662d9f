#include "paths/boruvka_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_context.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_memory.hpp"
#include "graph/handle/graph_check.hpp"
#include "paths/boruvka_steps_cuda.hpp"

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
    const auto memory =
        allocate_on_device(2 * array_bytes<uint32_t>(there.parts), "a level of the tree", tree_.device, resources_);
    there.parents = {memory, reinterpret_cast<uint32_t*>(memory.get())};
    launch_find_least_edges(edges_, arrays_, there.keys(), level.parts(), stream());
    touch(level);
    copy(level.key, there.keys());
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
    uint32_t* const parents = tree_.levels.back().parents.get();
    launch_number_parts(arrays_, from, parents, parts, edges_.rows, stream());
    copy(level.parent, parents);
    copy(level.depth, arrays_.depth[from]);
    const int64_t joined = flag();
    if (joined == 0) tree_.levels.pop_back();  // nothing was joined: the last round
    return joined;
  }

 private:
  cudaStream_t stream() const { return context_->stream(); }
  void copy(const HostArray<uint32_t>& to, const uint32_t* from) const {
    context_->copy_values(to.data(), from, to.size());
  }
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
    launch_widths(device_levels.data(), level_count, device_pairs.data(), some, device_widths.data(),
                  context->stream());
    context->copy_values(out + first, device_widths.data(), some);
    context->synchronize();
  }
}

}  // namespace kith
