// Boruvka's rounds, and their steps on the CPU. Each row has a cursor to its first edge that leaves its part. Parts
// only grow, so cursors only move forward, and each edge inside a part is passed over once. Rows without leaving edges
// are dropped.
//
// A part's least edge is found by two minima: of the keys, then of the two rows among edges with that key. Neither
// depends on the order of threads.
#include "paths/boruvka.hpp"

#include "core/ordered_key.hpp"
#include "core/within_limits.hpp"
#include "rows/row_blocks.hpp"

#include <atomic>
#include <numeric>

namespace kith {
namespace {

constexpr uint64_t kNoPair = ~uint64_t{0};

template <typename T>
void lower(T& place, T value) {
  const std::atomic_ref<T> shared(place);
  T before = shared.load(std::memory_order_relaxed);
  while (value < before && !shared.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
}

uint64_t pair_of(uint32_t a, uint32_t b) { return static_cast<uint64_t>(std::min(a, b)) << 32 | std::max(a, b); }

// The ancestor and depth of each part, twice as far away as before.
struct FartherWays {
  FartherWays(int64_t parts, const Resources& resources)
      : parent(parts, "where parts' edges lead", resources), depth(parts, "how deep parts hang", resources) {}

  HostArray<uint32_t> parent;
  HostArray<uint32_t> depth;
};

class BoruvkaCpu : public BoruvkaBackend {
 public:
  BoruvkaCpu(const EdgeLists& edges, const Resources& resources)
      : edges_(edges),
        resources_(resources.with_progress({})),  // the loop reports rounds
        part_(edges.rows(), "the rows' parts", resources),
        cursor_(edges.rows(), "the rows' edges passed over", resources),
        active_(edges.rows(), "rows with leaving edges", resources),
        active_count_(divide_up(edges.rows(), kRowBlock), "rows with leaving edges", resources),
        pair_(edges.rows(), "the parts' edges", resources),
        next_(edges.rows(), "where parts' edges lead", resources) {
    std::iota(part_.begin(), part_.end(), 0u);
    std::iota(active_.begin(), active_.end(), 0u);
    std::fill(cursor_.begin(), cursor_.end(), 0u);
    for_row_blocks("find least edges", edges.rows(), resources_, [&](int64_t first, int64_t end) {
      active_count_[first / kRowBlock] = static_cast<uint32_t>(end - first);
    });
  }

  void find_least_edges(MergeLevel& level) override {
    std::fill(level.key.begin(), level.key.end(), kNoEdge);
    std::fill_n(pair_.begin(), level.parts(), kNoPair);
    for_row_blocks("find least edges", edges_.rows(), resources_, [&](int64_t first, int64_t) {
      uint32_t* const rows = active_.data() + first;
      uint32_t& count = active_count_[first / kRowBlock];
      uint32_t kept = 0;
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t row = rows[i];
        if (!move_on(row)) continue;
        rows[kept++] = row;
        lower(level.key[part_[row]], ordered_of(edges_.of(row)[cursor_[row]]));
      }
      count = kept;
    });
    for_row_blocks("find least edges", edges_.rows(), resources_, [&](int64_t first, int64_t) {
      for (uint32_t i = 0; i < active_count_[first / kRowBlock]; ++i) {
        const uint32_t row = active_[first + i];
        const uint64_t edge = edges_.of(row)[cursor_[row]];
        if (ordered_of(edge) == level.key[part_[row]]) lower(pair_[part_[row]], pair_of(row, row_of(edge)));
      }
    });
    for_row_blocks("find least edges", level.parts(), resources_, [&](int64_t first, int64_t end) {
      for (int64_t part = first; part < end; ++part) {
        const auto smaller = static_cast<uint32_t>(pair_[part] >> 32);
        const auto larger = static_cast<uint32_t>(pair_[part]);
        const bool none = level.key[part] == kNoEdge;
        const bool in_order = none || part_[smaller] == part;
        level.near[part] = in_order ? smaller : larger;
        level.far[part] = in_order ? larger : smaller;
      }
    });
  }

  void count_round(const MergeLevel& level) override { const FartherWays ways(level.parts(), resources_); }

  int64_t join(MergeLevel& level) override {
    // Two parts that took the same edge form a cycle, and there are no others: the smaller part becomes the root.
    uint32_t* const next = next_.data();
    uint32_t* const parent = level.parent.data();
    for_row_blocks("join parts", level.parts(), resources_, [&](int64_t first, int64_t end) {
      for (int64_t part = first; part < end; ++part) {
        next[part] = level.key[part] == kNoEdge ? static_cast<uint32_t>(part) : part_[level.far[part]];
      }
    });
    for_row_blocks("join parts", level.parts(), resources_, [&](int64_t first, int64_t end) {
      for (int64_t part = first; part < end; ++part) {
        const bool stays = level.key[part] == kNoEdge || (next[next[part]] == part && part < next[part]);
        parent[part] = stays ? static_cast<uint32_t>(part) : next[part];
        level.depth[part] = stays ? 0 : 1;
      }
    });
    shorten_ways(level);

    // Numbers the remaining parts in their order; parts without leaving edges are finished.
    uint32_t count = 0;
    for (int64_t part = 0; part < level.parts(); ++part) {
      if (level.depth[part] == 0) next[part] = level.key[part] == kNoEdge ? kNoPart : count++;
    }
    for_row_blocks("join parts", level.parts(), resources_, [&](int64_t first, int64_t end) {
      for (int64_t part = first; part < end; ++part) parent[part] = next[parent[part]];
    });
    for_row_blocks("join parts", edges_.rows(), resources_, [&](int64_t first, int64_t end) {
      for (int64_t row = first; row < end; ++row) {
        if (part_[row] != kNoPart) part_[row] = parent[part_[row]];
      }
    });
    return count;
  }

 private:
  // Moves a row's cursor to its first edge that leaves its part; false if there is none.
  bool move_on(uint32_t row) {
    const std::span<const uint64_t> edges = edges_.of(row);
    uint32_t at = cursor_[row];
    while (at < edges.size() && part_[row_of(edges[at])] == part_[row]) ++at;
    cursor_[row] = at;
    return at < edges.size();
  }

  // Replaces parents by roots, by pointer doubling, since chains may be as long as there are parts.
  void shorten_ways(MergeLevel& level) {
    const FartherWays far(level.parts(), resources_);
    const HostArray<uint32_t>& far_parent = far.parent;
    const HostArray<uint32_t>& far_depth = far.depth;
    uint32_t* const parent = level.parent.data();
    uint32_t* const depth = level.depth.data();
    for (std::atomic<bool> changed{true}; changed;) {
      changed = false;
      for_row_blocks("join parts", level.parts(), resources_, [&](int64_t first, int64_t end) {
        bool any = false;
        for (int64_t part = first; part < end; ++part) {
          const uint32_t above = parent[part];
          far_parent[part] = parent[above];
          far_depth[part] = depth[part] + depth[above];
          any |= parent[above] != above;
        }
        if (any) changed.store(true, std::memory_order_relaxed);
      });
      for_row_blocks("join parts", level.parts(), resources_, [&](int64_t first, int64_t end) {
        std::copy(far_parent.data() + first, far_parent.data() + end, parent + first);
        std::copy(far_depth.data() + first, far_depth.data() + end, depth + first);
      });
    }
  }

  const EdgeLists& edges_;
  const Resources resources_;
  HostArray<uint32_t> part_;    // of each row, or kNoPart
  HostArray<uint32_t> cursor_;  // of each row, into its edges
  HostArray<uint32_t> active_;  // the rows of each block that have leaving edges, in front
  HostArray<uint32_t> active_count_;
  HostArray<uint64_t> pair_;  // of each part: the rows of its least edge, the smaller one above
  HostArray<uint32_t> next_;
};

}  // namespace

MergeTree boruvka(BoruvkaBackend& backend, int64_t rows, const Resources& resources) {
  std::vector<MergeLevel> levels;
  int64_t parts = rows;
  int64_t done = 0;
  ProgressMeter meter("join rows", parts, resources);
  while (parts > 0) {
    MergeLevel level(parts, resources);
    if (counts_only(resources)) {  // at least halved
      backend.count_round(level);
      parts /= 2;
      levels.push_back(std::move(level));
      continue;
    }
    backend.find_least_edges(level);
    const int64_t joined = backend.join(level);
    done += std::count(level.key.begin(), level.key.end(), kNoEdge);
    if (joined > 0) levels.push_back(std::move(level));  // else nothing leaves any
    meter.add(parts - joined);
    meter.poll();
    parts = joined;
  }
  meter.finish();
  return {rows, std::move(levels), done};
}

std::unique_ptr<BoruvkaBackend> make_boruvka_cpu(const EdgeLists& edges, const Resources& resources) {
  return std::make_unique<BoruvkaCpu>(edges, resources);
}

MergeTree boruvka(const EdgeLists& edges, const Resources& resources) {
  return boruvka(*make_boruvka_cpu(edges, resources), edges.rows(), resources);
}

}  // namespace kith
