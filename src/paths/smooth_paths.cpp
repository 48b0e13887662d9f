#include <kith/smooth_paths.hpp>

#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "core/name_table.hpp"
#include "core/named_limit.hpp"
#include "cuda/device_info.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/lists/row_blocks.hpp"
#include "paths/boruvka.hpp"
#include "paths/boruvka_cuda.hpp"
#include "paths/edge_lists.hpp"
#include "paths/fewest_steps.hpp"
#include "paths/merge_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr NameTable<PathBy, 2> kWays{{{{PathBy::steps, "steps"}, {PathBy::tree, "tree"}}}};

// A GPU takes longer to be asked than fewer take on the CPU.
constexpr int64_t kManyPairs = 10'000;

// The one asked for, else where the graph lies.
Device device_for(const KnnGraph& graph, const Resources& resources) {
  const Device asked = resources.device();
  if (asked.kind == DeviceKind::cuda) return usable_gpu_when_idle(asked).device;
  const bool there = asked.kind == DeviceKind::automatic && !graph.space().host_readable();
  return there ? Device::cuda(graph.space().device) : Device::cpu();
}

float width_of(uint32_t key) {
  return key == kNoEdge ? std::numeric_limits<float>::infinity() : key_of_ordered(key);
}

}  // namespace

std::string_view name_of(PathBy by) { return kWays.name(by); }
PathBy parse_path_by(std::string_view name) { return kWays.parse(name, "way of a path"); }

struct SmoothPaths::Impl {
  // On the CPU. The graph is on the host.
  Impl(const KnnGraph& graph, const Resources& resources)
      : edges(std::in_place, graph, std::span<const float>(), resources), tree(boruvka(*edges, resources)) {}

  // On a GPU. Paths by steps need the edges, which are listed when the first one is asked for: the graph is kept.
  Impl(const KnnGraph& given, int device, const Resources& resources)
      : kept(given), tree(rounds_on(given, device, resources)) {}

  MergeTree rounds_on(const KnnGraph& given, int device, const Resources& resources) {
    device_tree.device = device;
    if (given.rows() == 0) return {0, {}, 0};
    return boruvka(*make_boruvka_cuda(given, device_tree, resources), given.rows(), resources);
  }

  const EdgeLists& listed_edges(const Resources& resources) {
    const std::lock_guard lock(listing);
    if (!edges) edges.emplace(kept.to(MemorySpace::host(), resources), std::span<const float>(), resources);
    return *edges;
  }

  // The memory of a search that is over, or fresh.
  std::unique_ptr<FewestSteps> take_search(const Resources& resources) {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        std::unique_ptr<FewestSteps> search = std::move(idle.back());
        idle.pop_back();
        return search;
      }
    }
    return std::make_unique<FewestSteps>(tree.rows(), resources);
  }
  void give_back(std::unique_ptr<FewestSteps> search) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(search));
  }

  void check_row(int64_t row) const {
    if (row >= 0 && row < tree.rows()) return;
    throw InvalidArgument(tree.rows() == 0 ? fmt::format("row {}; the graph has no rows", row)
                                           : fmt::format("row {}; the graph's are 0 to {}", row, tree.rows() - 1));
  }

  float width(int64_t a, int64_t b) const {
    return a == b ? 0.0f : width_of(tree.width(static_cast<uint32_t>(a), static_cast<uint32_t>(b)));
  }

  KnnGraph kept;                // the graph, where the tree was built on a GPU
  DeviceMergeTree device_tree;  // there
  std::mutex listing;
  std::optional<EdgeLists> edges;
  MergeTree tree;
  std::mutex mutex;
  std::vector<std::unique_ptr<FewestSteps>> idle;  // as many as have run at once
};

SmoothPaths::SmoothPaths(const KnnGraph& graph, const Resources& resources) {
  check_distance(graph.metric(), "a path has steps of one");
  check_row_count(graph.rows());
  impl_ = dispatch(
      device_for(graph, resources),
      [&] {
        const KnnGraph here = graph.to(MemorySpace::host(), resources);
        const auto needed = [&] {
          const EdgeLists::Bytes bytes = EdgeLists::bytes(here, resources.threads());
          return bytes.kept + std::max(bytes.making, boruvka_bytes(here.rows()));
        };
        return naming_host_limit(needed, resources, [&] { return std::make_unique<Impl>(here, resources); });
      },
      [&](int index) { return std::make_unique<Impl>(graph, index, resources); });
}

SmoothPaths::~SmoothPaths() = default;
SmoothPaths::SmoothPaths(SmoothPaths&&) noexcept = default;
SmoothPaths& SmoothPaths::operator=(SmoothPaths&&) noexcept = default;

int64_t SmoothPaths::rows() const { return impl_->tree.rows(); }
int64_t SmoothPaths::parts() const { return impl_->tree.parts(); }

float SmoothPaths::width(int64_t a, int64_t b) const {
  impl_->check_row(a);
  impl_->check_row(b);
  return impl_->width(a, b);
}

void SmoothPaths::widths(const int64_t* pairs, int64_t count, float* out, const Resources& resources) const {
  for (int64_t i = 0; i < 2 * count; ++i) impl_->check_row(pairs[i]);
  if (!impl_->device_tree.levels.empty() && count >= kManyPairs) {
    return widths_cuda(impl_->device_tree, pairs, count, out, resources);
  }
  for_row_blocks("widths", count, resources, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) out[i] = impl_->width(pairs[2 * i], pairs[2 * i + 1]);
  });
}

SmoothPath SmoothPaths::path(int64_t a, int64_t b, PathBy by, const Resources& resources) const {
  if (name_of(by) == "?") throw InvalidArgument(fmt::format("way of a path {} is none", static_cast<int>(by)));
  SmoothPath result;
  result.width = width(a, b);
  std::vector<uint32_t> rows;
  const auto from = static_cast<uint32_t>(a);
  const auto to = static_cast<uint32_t>(b);
  if (a == b) {
    rows.push_back(from);
  } else if (const uint32_t width = impl_->tree.width(from, to); width == kNoEdge) {
    return result;
  } else if (by == PathBy::tree) {
    impl_->tree.walk(from, to, [&](uint32_t row) { rows.push_back(row); });
  } else {
    const EdgeLists& edges = impl_->listed_edges(resources);
    std::unique_ptr<FewestSteps> search = impl_->take_search(resources);
    rows = search->path(edges, from, to, width, resources);
    impl_->give_back(std::move(search));
  }
  result.size = static_cast<int64_t>(rows.size());
  result.rows = HostBuffer(array_bytes<int64_t>(result.size), "the path", resources);
  std::copy(rows.begin(), rows.end(), result.rows.as<int64_t>());
  return result;
}

}  // namespace kith
