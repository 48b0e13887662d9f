#include <kith/spanning_tree.hpp>

#include <kith/error.hpp>
#include <kith/knn.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/row_filter.hpp>

#include "core/host_array.hpp"
#include "core/name_table.hpp"
#include "core/ordered_key.hpp"
#include "core/reservation.hpp"
#include "core/within_limits.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/handle/row_sets.hpp"
#include "paths/boruvka.hpp"
#include "rows/narrowed_rows.hpp"
#include "rows/row_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr NameTable<EdgeWeights, 2> kWeights{
    {{{EdgeWeights::distance, "distance"}, {EdgeWeights::mutual_reachability, "mutual_reachability"}}}};
constexpr NameTable<Unconnected, 3> kUnconnected{
    {{{Unconnected::refuse, "refuse"}, {Unconnected::at_inf, "at_inf"}, {Unconnected::nearest, "nearest"}}}};

constexpr int64_t kUsualSamples = 5;

constexpr int64_t kSmallPart = 64;
constexpr int64_t kRowsAtOnce = 16'384;

// Which rows each part has.
struct Members {
  HostArray<uint32_t> rows;    // part by part
  HostArray<int64_t> offsets;  // of each part

  Members(const RowLabels& parts, const Resources& resources)
      : rows(parts.rows, "the parts' rows", resources), offsets(parts.sets + 1, "the parts' rows", resources) {
    if (counts_only(resources)) return;
    std::fill(offsets.begin(), offsets.end(), 0);
    for (const int64_t part : parts) ++offsets[part];
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());  // where parts end, and then where they begin
    for (int64_t row = parts.rows; row-- > 0;) rows[--offsets[parts.begin()[row]]] = static_cast<uint32_t>(row);
  }
  int64_t size(int64_t part) const { return offsets[part + 1] - offsets[part]; }
  const uint32_t* of(int64_t part) const { return rows.data() + offsets[part]; }
};

class PartSearch {
 public:
  PartSearch(const RowLabels& parts, const MatrixView& x, Metric metric, const Resources& resources)
      : parts_(parts),
        x_(x),
        metric_(metric),
        resources_(resources),
        least_(parts.sets, "the parts' edges", resources) {
    std::fill(least_.begin(), least_.end(), kNone);
  }

  // Offers each of these rows' nearest row of another part, which is among the first k that the filter leaves.
  void search(const uint32_t* rows, int64_t count, int64_t k, const RowFilter& filter) {
    KnnParams params;
    params.k = std::min(k, x_.rows());
    params.metric = metric_;
    params.filter = filter;
    for (int64_t first = 0; first < count; first += kRowsAtOnce) {
      const int64_t some = std::min(kRowsAtOnce, count - first);
      MatrixBuffer queries(x_.dtype(), some, x_.cols(), "rows of parts", resources_);
      if (counts_only(resources_)) {
        return count_call(resources_, [&](const Resources& used) { (void)knn(queries.view(), x_, params, used); });
      }
      for (int64_t i = 0; i < some; ++i) {
        std::memcpy(queries.mutable_view().row(i), x_.row(rows[first + i]),
                    static_cast<size_t>(x_.cols() * size_of(x_.dtype())));
      }
      const Neighbors found = knn(queries.view(), x_, params, resources_);
      for (int64_t i = 0; i < some; ++i) offer(rows[first + i], found.ids(i), found.distances(i), params.k);
    }
  }

  // kNone for the part that did not look.
  static constexpr ForestEdge kNone{kNoEdge, 0, 0};
  HostArray<ForestEdge> take() { return std::move(least_); }

 private:
  void offer(uint32_t row, const int64_t* ids, const float* distances, int64_t k) {
    const int64_t part = parts_.begin()[row];
    for (int64_t j = 0; j < k && ids[j] >= 0; ++j) {
      if (parts_.begin()[ids[j]] == part) continue;
      const auto other = static_cast<uint32_t>(ids[j]);
      const ForestEdge edge{ordered_key(distances[j]), std::min(row, other), std::max(row, other)};
      ForestEdge& least = least_[part];
      if (edge < least) least = edge;
      return;
    }
  }

  const RowLabels& parts_;
  const MatrixView& x_;
  Metric metric_;
  const Resources& resources_;
  HostArray<ForestEdge> least_;
};

HostArray<ForestEdge> least_edges(const RowLabels& parts, const MatrixView& x, Metric metric,
                                  const Resources& resources) {
  const Members members(parts, resources);
  PartSearch search(parts, x, metric, resources);
  const HostArray<uint32_t> small(parts.rows, "rows of small parts", resources);
  if (counts_only(resources)) {  // all rows in small parts, or in large ones
    search.search(small.data(), parts.rows, kSmallPart + 1, RowFilter());
    const HostArray<uint8_t> outside(parts.rows, "rows outside a part", resources);
    search.search(small.data(), parts.rows, 1, RowFilter::mask(outside.data(), parts.rows));
    return search.take();
  }
  int64_t largest = 0;
  for (int64_t part = 1; part < parts.sets; ++part) {
    if (members.size(part) > members.size(largest)) largest = part;
  }
  int64_t few = 0;
  int64_t most = 0;
  for (int64_t part = 0; part < parts.sets; ++part) {
    if (part == largest) continue;
    const int64_t size = members.size(part);
    if (size <= kSmallPart) {
      std::copy_n(members.of(part), size, small.data() + few);
      few += size;
      most = std::max(most, size);
      continue;
    }
    const HostArray<uint8_t> outside(parts.rows, "rows outside a part", resources);
    std::fill(outside.begin(), outside.end(), uint8_t{1});
    for (int64_t i = 0; i < size; ++i) outside[members.of(part)[i]] = 0;
    search.search(members.of(part), size, 1, RowFilter::mask(outside.data(), parts.rows));
  }
  search.search(small.data(), few, most + 1, RowFilter());
  return search.take();
}

// The shortest edges that join the parts of a graph: Boruvka's rounds again, with each part's nearest row outside found
// by exact search.
//
// The largest part need not look: all others do. A row of a part with s rows has its nearest other part's row among its
// s + 1 nearest rows, so small parts are searched together; a large one is searched with a filter that leaves it out.
// Cost: the rows of all parts but the largest are searched once a round, and a round halves the parts at least.
std::vector<ForestEdge> join_parts(RowLabels parts, const MatrixView& x, Metric metric, const Resources& resources) {
  const Resources quiet = resources.with_progress({});  // of many small searches
  std::vector<ForestEdge> joins;
  const RowSets sets(parts.rows, resources);
  if (counts_only(resources)) {
    parts.sets = parts.rows;  // at most
    (void)least_edges(parts, x, metric, quiet);
    return joins;
  }
  {
    const Members members(parts, resources);
    for (int64_t part = 0; part < parts.sets; ++part) {
      for (int64_t i = 1; i < members.size(part); ++i) sets.join(members.of(part)[0], members.of(part)[i]);
    }
  }
  const int64_t total = parts.sets;
  while (parts.sets > 1) {
    resources.report({"join parts", total - parts.sets, total});
    for (const ForestEdge& edge : least_edges(parts, x, metric, quiet)) {
      if (edge.key != kNoEdge && sets.join(edge.smaller, edge.larger)) joins.push_back(edge);
    }
    parts = sets.labels(resources);
  }
  return joins;
}

// Each row's distance to its min_samples-th neighbour; nothing where edges weigh what they are long.
HostArray<float> core_distances(const KnnGraph& graph, const SpanningTreeParams& params, const Resources& resources) {
  if (params.weights == EdgeWeights::distance || graph.rows() < 2) return {};
  // Unless asked for, no more than there are other rows.
  const int64_t usual = std::min({kUsualSamples, graph.k(), graph.rows() - 1});
  const int64_t samples = params.min_samples > 0 ? params.min_samples : usual;
  if (samples > graph.k()) {
    throw InvalidArgument(
        fmt::format("min_samples = {}; allowed are 1 to k = {}, the neighbours that the graph has: build it with a "
                    "larger k",
                    samples, graph.k()));
  }
  HostArray<float> core(graph.rows(), "core distances", resources);
  if (counts_only(resources)) return core;
  for (int64_t row = 0; row < graph.rows(); ++row) {
    if (graph.ids(row)[samples - 1] < 0) {
      throw InvalidArgument(
          fmt::format("row {} has fewer than min_samples = {} neighbours: lower min_samples", row, samples));
    }
    core[row] = graph.distances(row)[samples - 1];
  }
  return core;
}

RowLabels parts_of(const std::vector<ForestEdge>& forest, int64_t rows, const Resources& resources) {
  const RowSets sets(rows, resources);
  for (const ForestEdge& edge : forest) sets.join(edge.smaller, edge.larger);
  return sets.labels(resources);
}

// Edges from the first row of all to the first row of each other part.
std::vector<ForestEdge> infinite_edges(const RowLabels& parts) {
  std::vector<ForestEdge> edges;
  int64_t known = 1;
  for (int64_t row = 0; known < parts.sets; ++row) {
    if (parts.begin()[row] < known) continue;
    edges.push_back({ordered_key(std::numeric_limits<float>::infinity()), 0, static_cast<uint32_t>(row)});
    ++known;
  }
  return edges;
}

// Whether the graph has parts that are to be joined shows only in the end: where memory is only counted it has as many
// as can be.
SpanningTree make_tree(const KnnGraph& graph, const MatrixView* x, const SpanningTreeParams& params,
                       const Resources& resources) {
  const HostArray<float> core = core_distances(graph, params, resources);
  std::vector<ForestEdge> edges;
  const Reservation counted(array_bytes<ForestEdge>(graph.rows()), 0, resources);
  edges.reserve(static_cast<size_t>(graph.rows()));
  {
    const EdgeLists lists(graph, {core.data(), static_cast<size_t>(core.size())}, resources);
    const MergeTree tree = boruvka(lists, resources);
    if (tree.parts() > 1 && params.unconnected == Unconnected::refuse) {
      throw InvalidArgument(fmt::format(
          "the graph has {} parts that no edge joins; build it with a larger k, or ask for unconnected = at_inf, or "
          "nearest, which searches the vectors for the shortest edges between parts",
          tree.parts()));
    }
    if (!counts_only(resources)) tree.each_edge([&](const ForestEdge& edge) { edges.push_back(edge); });
  }
  if (static_cast<int64_t>(edges.size()) + 1 < graph.rows()) {
    RowLabels parts = parts_of(edges, graph.rows(), resources);
    std::vector<ForestEdge> joins = params.unconnected == Unconnected::nearest
                                        ? join_parts(std::move(parts), *x, graph.metric(), resources)
                                        : infinite_edges(parts);
    for (ForestEdge& edge : joins) {
      if (core.size() > 0)
        edge.key = std::max({edge.key, ordered_key(core[edge.smaller]), ordered_key(core[edge.larger])});
    }
    edges.insert(edges.end(), joins.begin(), joins.end());
  }
  resources.check_cancelled();
  std::sort(edges.begin(), edges.end());
  SpanningTree tree(graph.rows(), resources);
  for_row_blocks("write tree", tree.size(), resources.with_progress({}), [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const ForestEdge& edge = edges[static_cast<size_t>(i)];
      tree.ends(i)[0] = edge.smaller;
      tree.ends(i)[1] = edge.larger;
      tree.weights()[i] = key_of_ordered(edge.key);
    }
  });
  return tree;
}

// The graph is checked, and brought to the host.
SpanningTree tree_of(const KnnGraph& given, const MatrixView* x, const SpanningTreeParams& params,
                     const Resources& resources) {
  params.validate();
  check_distance(given.metric(), "a tree's edges have one");
  return within_limits("a spanning tree", resources, [&](const Resources& used) {
    const KnnGraph graph = graph_in(MemorySpace::host(), given, used);
    return make_tree(graph, x, params, used);
  });
}

}  // namespace

std::string_view name_of(EdgeWeights weights) { return kWeights.name(weights); }
std::string_view name_of(Unconnected unconnected) { return kUnconnected.name(unconnected); }
EdgeWeights parse_edge_weights(std::string_view name) { return kWeights.parse(name, "weights"); }
Unconnected parse_unconnected(std::string_view name) { return kUnconnected.parse(name, "unconnected"); }

void SpanningTreeParams::validate() const {
  if (name_of(weights) == "?") throw InvalidArgument(fmt::format("weights {} are none", static_cast<int>(weights)));
  if (name_of(unconnected) == "?") {
    throw InvalidArgument(fmt::format("unconnected {} is none", static_cast<int>(unconnected)));
  }
  if (min_samples < 0) throw InvalidArgument(fmt::format("min_samples = {}; it must be 1 to k", min_samples));
  if (min_samples > 0 && weights == EdgeWeights::distance) {
    throw InvalidArgument(fmt::format(
        "min_samples = {} has no effect where weights are distances; ask for mutual_reachability", min_samples));
  }
}

SpanningTree spanning_tree(const KnnGraph& graph, const SpanningTreeParams& params, const Resources& resources) {
  if (params.unconnected == Unconnected::nearest) {
    throw InvalidArgument("unconnected = nearest searches the graph's vectors: give them, too");
  }
  return tree_of(graph, nullptr, params, resources);
}

SpanningTree spanning_tree(const KnnGraph& graph, const MatrixView& x, const SpanningTreeParams& params,
                           const Resources& resources) {
  if (x.rows() != graph.rows()) {
    throw InvalidArgument(fmt::format("{} vectors and a graph of {} rows; give the vectors that the graph was built of",
                                      x.rows(), graph.rows()));
  }
  if (!x.space().host_readable()) throw Unsupported("vectors in a GPU's memory: copy them to the host to join parts");
  return with_narrowed(
      "a spanning tree", "x", x, graph.metric(), resources,
      [&](const MatrixView& rows, const Resources& used) { return tree_of(graph, &rows, params, used); });
}

RowLabels SpanningTree::labels(double height, const Resources& resources) const {
  if (std::isnan(height)) throw InvalidArgument("height is nan; it must be a number");
  return within_limits("labels of rows", resources, [&](const Resources& used) {
    const RowSets sets(rows_, used);
    for_row_blocks("label rows", size(), used, [&](int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        if (static_cast<double>(weights()[i]) > height) return;  // and so are all that follow
        sets.join(static_cast<uint32_t>(ends(i)[0]), static_cast<uint32_t>(ends(i)[1]));
      }
    });
    return sets.labels(used);
  });
}

HostBuffer SpanningTree::single_linkage(const Resources& given) const {
  return within_limits("the linkage", given, [&](const Resources& resources) {
    HostBuffer result(array_bytes<double>(size() * 4), "the linkage", resources);
    // For each cluster, rows first: the one that it was joined into, and its rows.
    const HostArray<uint32_t> parent(2 * rows_, "clusters", resources);
    const HostArray<uint32_t> counts(2 * rows_, "clusters", resources);
    if (counts_only(resources)) return result;
    std::iota(parent.begin(), parent.end(), 0u);
    std::fill(counts.begin(), counts.end(), 1u);
    const auto find = [&](uint32_t cluster) {
      while (parent[cluster] != cluster) cluster = parent[cluster] = parent[parent[cluster]];
      return cluster;
    };
    ProgressMeter meter("link", size(), resources);
    for (int64_t i = 0; i < size(); ++i) {
      const uint32_t a = find(static_cast<uint32_t>(ends(i)[0]));
      const uint32_t b = find(static_cast<uint32_t>(ends(i)[1]));
      const auto joined = static_cast<uint32_t>(rows_ + i);
      counts[joined] = counts[a] + counts[b];
      parent[a] = parent[b] = joined;
      double* const out = result.as<double>() + 4 * i;
      out[0] = std::min(a, b);
      out[1] = std::max(a, b);
      out[2] = static_cast<double>(weights()[i]);
      out[3] = counts[joined];
      if (i % kRowBlock == 0) {
        meter.add(kRowBlock);
        meter.poll();
      }
    }
    meter.finish();
    return result;
  });
}

}  // namespace kith
