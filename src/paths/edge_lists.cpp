#include <kith/error.hpp>

#include "core/ordered_key.hpp"
#include "core/within_limits.hpp"
#include "graph/handle/graph_check.hpp"
#include "paths/boruvka.hpp"
#include "rows/row_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

namespace kith {
namespace {

static_assert(kRowBlock <= 1 << 16);  // a row's place in its block has 16 bits

// Rows whose edges are distributed at a time, enough for every block to get some.
constexpr int64_t kRowsPerTask = 4 * kRowBlock;

// Edges to the rows of each block of rows, gathered from the whole graph. They are at the beginning of the block's part
// of `edges`, which also has room for the edges from the block.
struct Gathered {
  HostArray<int64_t> share;    // where each block's part begins
  HostArray<int64_t> arrived;  // edges to each block
  HostArray<uint16_t> places;  // which of the block's rows an edge is to; its first one is where `before` says
  HostArray<int64_t> before;   // edges to earlier blocks
};

float weight_of(float distance, int64_t row, int64_t other, std::span<const float> core) {
  return core.empty() ? distance
                      : std::max({distance, core[static_cast<size_t>(row)], core[static_cast<size_t>(other)]});
}

uint32_t key_at(const KnnGraph& graph, int64_t row, int64_t j, std::span<const float> core) {
  return ordered_key(weight_of(graph.distances(row)[j], row, graph.ids(row)[j], core));
}

// The number of neighbours of a row, or -1 if they are invalid.
int64_t named(const KnnGraph& graph, int64_t row, std::vector<int64_t>& scratch) {
  if (!row_is_sound(graph, row, scratch)) return -1;
  const int64_t* const ids = graph.ids(row);
  return std::find(ids, ids + graph.k(), -1) - ids;
}

// Counts the edges of each row and those to each block, and lays out the arrays. `edges`: their total number, for
// counting resources.
Gathered count_edges(const KnnGraph& graph, const HostArray<uint32_t>& own, int64_t edges, const Resources& resources) {
  const int64_t rows = graph.rows();
  const int64_t blocks = divide_up(rows, kRowBlock);
  Gathered gathered{{blocks + 1, "blocks of edges", resources}, {blocks, "blocks of edges", resources}, {}, {}};
  if (counts_only(resources)) {
    gathered.before = HostArray<int64_t>(blocks + 1, "blocks of edges", resources);
    gathered.places = HostArray<uint16_t>(edges, "which rows edges are to", resources);
    return gathered;
  }
  std::fill(gathered.arrived.begin(), gathered.arrived.end(), 0);
  std::atomic<bool> sound{true};
  const auto count_some = [&](int64_t first, int64_t end) {
    std::vector<int64_t> to(static_cast<size_t>(blocks), 0);
    std::vector<int64_t> scratch;
    for (int64_t row = first; row < end; ++row) {
      const int64_t count = named(graph, row, scratch);
      if (count < 0) sound.store(false, std::memory_order_relaxed);
      own[row] = static_cast<uint32_t>(std::max<int64_t>(count, 0));
      for (int64_t j = 0; j < count; ++j) ++to[static_cast<size_t>(graph.ids(row)[j] / kRowBlock)];
    }
    for (int64_t block = 0; block < blocks; ++block) {
      const std::atomic_ref<int64_t> all(gathered.arrived[block]);
      if (to[static_cast<size_t>(block)] > 0) all.fetch_add(to[static_cast<size_t>(block)], std::memory_order_relaxed);
    }
  };
  for_row_blocks("count edges", rows, resources, count_some, kRowsPerTask);
  if (!sound) {
    check_graph(graph, resources);  // names the row
    throw InvalidArgument("the graph was changed while it was read");
  }
  gathered.before = HostArray<int64_t>(blocks + 1, "blocks of edges", resources);
  gathered.share[0] = gathered.before[0] = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t from = 0;
    for (int64_t row = block * kRowBlock; row < std::min((block + 1) * kRowBlock, rows); ++row) from += own[row];
    gathered.before[block + 1] = gathered.before[block] + gathered.arrived[block];
    gathered.share[block + 1] = gathered.share[block] + gathered.arrived[block] + from;
  }
  gathered.places = HostArray<uint16_t>(gathered.before[blocks], "which rows edges are to", resources);
  return gathered;
}

// Distributes edges to the blocks of the rows that they lead to, in any order.
void hand_out(const KnnGraph& graph, std::span<const float> core, const Gathered& gathered,
              const HostArray<uint32_t>& own, const HostArray<uint64_t>& edges, const Resources& resources) {
  const int64_t blocks = gathered.arrived.size();
  const HostArray<int64_t> filled(blocks, "blocks of edges", resources);
  std::fill(filled.begin(), filled.end(), 0);
  const auto hand_out_some = [&](int64_t first, int64_t end) {
    std::vector<int64_t> next(static_cast<size_t>(blocks), 0);
    for (int64_t row = first; row < end; ++row) {
      for (int64_t j = 0; j < own[row]; ++j) ++next[static_cast<size_t>(graph.ids(row)[j] / kRowBlock)];
    }
    for (int64_t block = 0; block < blocks; ++block) {
      int64_t& place = next[static_cast<size_t>(block)];
      const std::atomic_ref<int64_t> all(filled[block]);
      if (place > 0) place = all.fetch_add(place, std::memory_order_relaxed);
    }
    for (int64_t row = first; row < end; ++row) {
      for (int64_t j = 0; j < own[row]; ++j) {
        const int64_t to = graph.ids(row)[j];
        const int64_t block = to / kRowBlock;
        const int64_t place = next[static_cast<size_t>(block)]++;
        edges[gathered.share[block] + place] = pack_neighbor(key_at(graph, row, j, core), static_cast<uint32_t>(row));
        gathered.places[gathered.before[block] + place] = static_cast<uint16_t>(to % kRowBlock);
      }
    }
  };
  for_row_blocks("turn edges", graph.rows(), resources, hand_out_some, kRowsPerTask);
}

// Sorts a row's edges: its own, which are nearly always sorted, followed by those to it, most of which are reversed
// ones of its own, or farther than these. Drops duplicates, and returns the number of edges.
uint32_t sort_row(uint64_t* edges, uint32_t own, uint32_t all) {
  constexpr uint32_t kFew = 64;
  if (all > kFew || !std::is_sorted(edges, edges + own)) {
    std::sort(edges, edges + all);
    return static_cast<uint32_t>(std::unique(edges, edges + all) - edges);
  }
  uint32_t count = own;
  for (uint32_t i = own; i < all; ++i) {
    const uint64_t edge = edges[i];
    uint32_t at = count;
    while (at > 0 && edges[at - 1] > edge) --at;
    if (at > 0 && edges[at - 1] == edge) continue;
    std::copy_backward(edges + at, edges + count, edges + count + 1);
    edges[at] = edge;
    ++count;
  }
  return count;
}

// For counting resources: the number of edges, and the most to a block, by a pass over the graph; if the graph itself
// is only counted, their upper bounds.
struct CountedEdges {
  int64_t all = 0;
  int64_t most = 0;

  explicit CountedEdges(const KnnGraph& graph) {
    if (is_counted_only(graph.ids())) {
      all = most = graph.rows() * graph.k();
      return;
    }
    std::vector<int64_t> arrived(static_cast<size_t>(divide_up(graph.rows(), kRowBlock)), 0);
    std::vector<int64_t> scratch;
    for (int64_t row = 0; row < graph.rows(); ++row) {
      const int64_t count = std::max<int64_t>(named(graph, row, scratch), 0);
      all += count;
      for (int64_t j = 0; j < count; ++j) ++arrived[static_cast<size_t>(graph.ids(row)[j] / kRowBlock)];
    }
    if (!arrived.empty()) most = *std::max_element(arrived.begin(), arrived.end());
  }
};

}  // namespace

EdgeLists::EdgeLists(const KnnGraph& graph, std::span<const float> core, const Resources& resources) {
  const int64_t rows = graph.rows();
  check_row_count(rows);
  starts_ = HostArray<uint64_t>(rows, "where the rows' edges begin", resources);
  lengths_ = HostArray<uint32_t>(rows, "how many edges the rows have", resources);
  if (counts_only(resources)) {
    const CountedEdges counted(graph);
    const Gathered gathered = count_edges(graph, lengths_, counted.all, resources);
    edges_ = HostArray<uint64_t>(2 * counted.all, "edges both ways", resources);
    count_work(array_footprint<int64_t>(gathered.arrived.size())
                   .then(array_footprint<uint64_t>(counted.most, resources.threads())),
               resources);
    return;
  }
  const Gathered gathered = count_edges(graph, lengths_, 0, resources);
  edges_ = HostArray<uint64_t>(gathered.share[gathered.arrived.size()], "edges both ways", resources);
  hand_out(graph, core, gathered, lengths_, edges_, resources);

  // Distributes the edges of a block to its rows.
  const int64_t most = rows == 0 ? 0 : *std::max_element(gathered.arrived.begin(), gathered.arrived.end());
  const HostArray<uint64_t> copies(most * resources.threads(), "a block's edges", resources);
  ProgressMeter meter("sort edges", rows, resources);
  parallel_for(gathered.arrived.size(), meter, resources, [&](int64_t block, int slot) {
    const int64_t first = block * kRowBlock;
    const int64_t end = std::min(first + kRowBlock, rows);
    const int64_t arrived = gathered.arrived[block];
    const uint16_t* const places = gathered.places.data() + gathered.before[block];
    uint64_t* const copy = copies.data() + slot * most;
    std::copy_n(edges_.data() + gathered.share[block], arrived, copy);

    std::vector<uint32_t> all(lengths_.data() + first, lengths_.data() + end);
    for (int64_t i = 0; i < arrived; ++i) ++all[places[i]];
    uint64_t start = static_cast<uint64_t>(gathered.share[block]);
    for (int64_t row = first; row < end; ++row) {
      starts_[row] = start;
      start += all[static_cast<size_t>(row - first)];
      for (int64_t j = 0; j < lengths_[row]; ++j) {
        edges_[static_cast<int64_t>(starts_[row]) + j] =
            pack_neighbor(key_at(graph, row, j, core), static_cast<uint32_t>(graph.ids(row)[j]));
      }
      all[static_cast<size_t>(row - first)] = lengths_[row];
    }
    for (int64_t i = 0; i < arrived; ++i) {
      edges_[static_cast<int64_t>(starts_[first + places[i]] + all[places[i]]++)] = copy[i];
    }
    for (int64_t row = first; row < end; ++row) {
      lengths_[row] = sort_row(edges_.data() + starts_[row], lengths_[row], all[static_cast<size_t>(row - first)]);
    }
    meter.add(end - first);
  });
  meter.finish();
}

}  // namespace kith
