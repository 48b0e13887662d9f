#include <kith/smooth_paths.hpp>

#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "core/host_array.hpp"
#include "core/name_table.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_info.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/handle/graph_output.hpp"
#include "paths/boruvka.hpp"
#include "rows/row_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr NameTable<PathBy, 2> kWays{{{{PathBy::steps, "steps"}, {PathBy::tree, "tree"}}}};

// The CPU answers fewer pairs before a GPU has been called.
constexpr int64_t kManyPairs = 10'000;

// The requested device, or that of the graph.
Device device_for(const KnnGraph& graph, const Resources& resources) {
  const Device asked = resources.device();
  if (asked.kind == DeviceKind::cuda) return usable_gpu_when_idle(asked).device;
  const bool there = asked.kind == DeviceKind::automatic && !graph.space().host_readable();
  return there ? Device::cuda(graph.space().device) : Device::cpu();
}

float width_of(uint32_t key) { return key == kNoEdge ? std::numeric_limits<float>::infinity() : key_of_ordered(key); }

constexpr uint32_t kSideB = uint32_t{1} << 31;  // rows have 31 bits, and so have places + 1

// Calls use(row) for each row that an edge up to the width leads to.
template <typename Use>
void each_neighbor(uint32_t row, const EdgeLists& edges, uint32_t width, const Use& use) {
  for (const uint64_t edge : edges.of(row)) {
    if (ordered_of(edge) > width) return;
    use(row_of(edge));
  }
}

}  // namespace

// The path with the fewest steps over edges no longer than a width; among several, the first by row numbers.
//
// A breadth-first search from both ends, level by level, always growing the smaller level, until an edge connects the
// newest levels of both: then the number of steps is known. Rows on some shortest path are marked backwards on a's
// side, and the path goes from a, always to the smallest such row.
//
// Time: proportional to the edges of the rows seen. Memory: 8 bytes per row of the graph, allocated once and kept for
// the next path; pages that are not touched take no memory.
class FewestSteps {
 public:
  FewestSteps(int64_t rows, const Resources& resources)
      : place_(rows, "rows that a path's search has seen", resources), queue_(rows, "a path's search", resources) {
    std::fill(place_.begin(), place_.end(), 0u);
  }

  // From a to another row b, inclusive; edges with keys up to `width` connect them. Throws Cancelled.
  std::vector<uint32_t> path(const EdgeLists& edges, uint32_t a, uint32_t b, uint32_t width,
                             const Resources& resources) {
    Side from{0, {0}, 0};
    Side to{kSideB, {0}, 0};
    struct Forget {  // clears the marks for the next search, even after an exception
      FewestSteps& search;
      const Side& from;
      const Side& to;
      ~Forget() {
        search.forget(from);
        search.forget(to);
      }
    } forget{*this, from, to};
    see(from, a);
    see(to, b);

    uint32_t joined = 0;  // rows of a's level `last` that have an edge to b's level `first`
    size_t last = 0;
    size_t first = 0;
    while (joined == 0) {
      resources.check_cancelled();
      const bool a_grows = from.newest() <= to.newest();
      joined = a_grows ? grow(from, to, edges, width) : grow(to, from, edges, width);
      last = from.levels.size() - (a_grows ? 2 : 1);  // the level that was begun beyond the meeting is none
      first = to.levels.size() - (a_grows ? 1 : 2);
    }

    // On a's side: how many rows of each level, put in front of it, lead on to b.
    std::vector<uint32_t> leading(last + 1, 0);
    leading[last] = joined;
    for (size_t level = last; level > 0; --level) {
      const uint32_t end = from.begin(level) + leading[level];
      for (uint32_t place = from.begin(level); place < end; ++place) {
        each_neighbor(row_at(from, place), edges, width, [&](uint32_t row) {
          if (!lies(row, from, from.begin(level - 1), from.begin(level))) return;
          bring_forward(from, level - 1, row, leading[level - 1]);
        });
      }
    }

    std::vector<uint32_t> path{a};
    for (size_t level = 1; level <= last; ++level) {
      path.push_back(smallest(path.back(), edges, width, from, from.begin(level), from.begin(level) + leading[level]));
    }
    for (size_t level = first + 1; level-- > 0;) {
      path.push_back(smallest(path.back(), edges, width, to, to.begin(level), to.end(level)));
    }
    return path;
  }

 private:
  // The rows seen from one end, by level.
  struct Side {
    uint32_t mark;                 // in front of a row's place
    std::vector<uint32_t> levels;  // where each level begins; its end is the next one's, or `seen`
    uint32_t seen = 0;

    uint32_t begin(size_t level) const { return levels[level]; }
    uint32_t end(size_t level) const { return level + 1 < levels.size() ? levels[level + 1] : seen; }
    uint32_t newest() const { return seen - levels.back(); }
  };

  uint32_t& row_at(const Side& side, uint32_t place) const {
    return queue_[side.mark == 0 ? place : queue_.size() - 1 - place];
  }
  void see(Side& side, uint32_t row) {
    row_at(side, side.seen) = row;
    place_[row] = side.mark | ++side.seen;
  }
  // Whether the row was seen from that side, at a place from begin to end - 1.
  bool lies(uint32_t row, const Side& side, uint32_t begin, uint32_t end) const {
    const uint32_t place = (place_[row] ^ side.mark) - 1;  // far too large where it was not seen, or is the other's
    return place >= begin && place < end;
  }
  // Adds a level to `side`, unless an edge leads to the newest level of `other`. In that case moves the rows of a's
  // newest level that have such an edge to its front, and returns their number.
  uint32_t grow(Side& side, Side& other, const EdgeLists& edges, uint32_t width) {
    const size_t level = side.levels.size() - 1;
    const size_t met = other.levels.size() - 1;
    const uint32_t end = side.seen;
    uint32_t joined = 0;
    side.levels.push_back(end);
    for (uint32_t place = side.begin(level); place < end; ++place) {
      const uint32_t row = row_at(side, place);
      bool meets = false;
      each_neighbor(row, edges, width, [&](uint32_t to) {
        if (place_[to] == 0) {
          if (joined == 0) see(side, to);
        } else if (lies(to, other, other.begin(met), other.seen)) {
          meets = true;
          if (side.mark == kSideB) bring_forward(other, met, to, joined);
        }
      });
      // Rows before this place have had their turn: one that is exchanged with this one is not missed.
      if (meets && side.mark == 0) bring_forward(side, level, row, joined);
    }
    return joined;
  }
  // Moves a row of a's level to its front, after `count` such rows, unless it is one of them.
  void bring_forward(const Side& side, size_t level, uint32_t row, uint32_t& count) {
    const uint32_t to = side.begin(level) + count;
    const uint32_t from = (place_[row] ^ side.mark) - 1;
    if (from < to) return;
    const uint32_t other = row_at(side, to);
    std::swap(row_at(side, to), row_at(side, from));
    place_[row] = side.mark | (to + 1);
    if (other != row) place_[other] = side.mark | (from + 1);
    ++count;
  }
  uint32_t smallest(uint32_t from, const EdgeLists& edges, uint32_t width, const Side& side, uint32_t begin,
                    uint32_t end) const {
    uint32_t found = ~uint32_t{0};
    each_neighbor(from, edges, width, [&](uint32_t row) {
      if (row < found && lies(row, side, begin, end)) found = row;
    });
    return found;
  }
  void forget(const Side& side) {
    for (uint32_t place = 0; place < side.seen; ++place) place_[row_at(side, place)] = 0;
  }

  HostArray<uint32_t> place_;  // of each row: 0 where it was not seen, else its side's mark and its place + 1
  HostArray<uint32_t> queue_;  // a's side from the front, b's from the back
};

std::string_view name_of(PathBy by) { return kWays.name(by); }
PathBy parse_path_by(std::string_view name) { return kWays.parse(name, "way of a path"); }

struct SmoothPaths::Impl {
  // On the CPU. The graph is on the host.
  Impl(const KnnGraph& graph, const Resources& resources)
      : edges(std::in_place, graph, std::span<const float>(), resources), tree(boruvka(*edges, resources)) {}

  // On a GPU. Keeps the graph for paths by steps, which need lists of edges that are made at the first request.
  Impl(const KnnGraph& given, int device, const Resources& resources)
      : kept(given), tree(rounds_on(given, device, resources)) {}

  MergeTree rounds_on(const KnnGraph& given, int device, const Resources& resources) {
    device_tree.device = device;
    if (given.rows() == 0) return {0, {}, 0};
    return boruvka(*make_boruvka_cuda(given, device_tree, resources), given.rows(), resources);
  }

  const EdgeLists& listed_edges(const Resources& resources) {
    const std::lock_guard lock(listing);
    if (!edges) edges.emplace(graph_in(MemorySpace::host(), kept, resources), std::span<const float>(), resources);
    return *edges;
  }

  // The memory of the next path by steps: lists of edges and search, unless they exist, and the path, whose length is
  // not known.
  Footprint steps_footprint(const Resources& resources) {
    const std::scoped_lock lock(listing, mutex);
    Footprint needed = counted(resources, [&](const Resources& counting) {
      std::optional<EdgeLists> listed;
      if (!edges) listed.emplace(graph_in(MemorySpace::host(), kept, counting), std::span<const float>(), counting);
      if (idle.empty()) const FewestSteps search(tree.rows(), counting);
    });
    needed.at_least = true;
    return needed;
  }

  // The memory of a finished search, or new memory.
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
  const Device device = device_for(graph, resources);
  impl_ = within_limits("smooth paths", resources.with_device(device), [&](const Resources& used) {
    return dispatch(
        device, [&] { return std::make_unique<Impl>(graph_in(MemorySpace::host(), graph, used), used); },
        [&](int index) { return std::make_unique<Impl>(graph, index, used); });
  });
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
    const Resources there = resources.with_device(Device::cuda(impl_->device_tree.device));
    return within_limits("widths", there,
                         [&](const Resources& used) { widths_cuda(impl_->device_tree, pairs, count, out, used); });
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
    within_limits(
        "a path", resources, [&] { return impl_->steps_footprint(resources); },
        [&] {
          const EdgeLists& edges = impl_->listed_edges(resources);
          std::unique_ptr<FewestSteps> search = impl_->take_search(resources);
          rows = search->path(edges, from, to, width, resources);
          impl_->give_back(std::move(search));
        });
  }
  result.size = static_cast<int64_t>(rows.size());
  result.rows = HostBuffer(array_bytes<int64_t>(result.size), "the path", resources);
  std::copy(rows.begin(), rows.end(), result.rows.as<int64_t>());
  return result;
}

}  // namespace kith
