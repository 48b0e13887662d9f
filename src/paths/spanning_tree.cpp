#include <kith/spanning_tree.hpp>

#include <kith/error.hpp>

#include "core/host_array.hpp"
#include "core/name_table.hpp"
#include "core/reservation.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/handle/row_sets.hpp"
#include "graph/lists/counted_work.hpp"
#include "graph/lists/row_blocks.hpp"
#include "paths/boruvka.hpp"
#include "paths/edge_lists.hpp"
#include "paths/join_parts.hpp"
#include "rows/narrowed_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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
  if (only_counts(resources)) return core;
  for (int64_t row = 0; row < graph.rows(); ++row) {
    if (graph.ids(row)[samples - 1] < 0) {
      throw InvalidArgument(fmt::format("row {} has fewer than min_samples = {} neighbours: lower min_samples", row,
                                        samples));
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
  for (int64_t row = 0; row < parts.rows; ++row) {
    if (parts.begin()[row] < known) continue;
    edges.push_back({ordered_key(std::numeric_limits<float>::infinity()), 0, static_cast<uint32_t>(row)});
    ++known;
  }
  return edges;
}

// make_tree() where it is counted. Whether the graph has parts that are to be joined shows only in the end.
SpanningTree count_tree(const KnnGraph& graph, const MatrixView* x, const SpanningTreeParams& params,
                        const Resources& resources) {
  const HostArray<float> core = core_distances(graph, params, resources);
  const Reservation edges(array_bytes<ForestEdge>(graph.rows()), 0, resources);
  {
    const EdgeLists lists(graph, {}, resources);
    const MergeTree tree = boruvka(lists, resources);
  }
  if (params.unconnected != Unconnected::refuse) {
    RowLabels parts = parts_of({}, graph.rows(), resources);
    parts.sets = parts.rows;  // at most
    if (params.unconnected == Unconnected::nearest) join_parts(std::move(parts), *x, graph.metric(), resources);
  }
  return SpanningTree(graph.rows(), resources);
}

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
    tree.each_edge([&](const ForestEdge& edge) { edges.push_back(edge); });
  }
  if (static_cast<int64_t>(edges.size()) + 1 < graph.rows()) {
    RowLabels parts = parts_of(edges, graph.rows(), resources);
    std::vector<ForestEdge> joins = params.unconnected == Unconnected::at_inf
                                        ? infinite_edges(parts)
                                        : join_parts(std::move(parts), *x, graph.metric(), resources);
    for (ForestEdge& edge : joins) {
      if (core.size() > 0) edge.key = std::max({edge.key, ordered_key(core[edge.smaller]), ordered_key(core[edge.larger])});
    }
    edges.insert(edges.end(), joins.begin(), joins.end());
  }
  resources.check_cancelled();
  std::sort(edges.begin(), edges.end());
  SpanningTree tree(graph.rows(), resources);
  for (int64_t i = 0; i < tree.size(); ++i) {
    const ForestEdge& edge = edges[static_cast<size_t>(i)];
    tree.ends(i)[0] = edge.smaller;
    tree.ends(i)[1] = edge.larger;
    tree.weights()[i] = key_of_ordered(edge.key);
  }
  return tree;
}

// The graph is checked, and brought to the host.
SpanningTree tree_of(const KnnGraph& given, const MatrixView* x, const SpanningTreeParams& params,
                     const Resources& resources) {
  params.validate();
  check_distance(given.metric(), "a tree's edges have one");
  return within_limits("a spanning tree", resources, [&](const Resources& used) {
    const KnnGraph graph = graph_in(MemorySpace::host(), given, used);
    return only_counts(used) ? count_tree(graph, x, params, used) : make_tree(graph, x, params, used);
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
    throw InvalidArgument(
        fmt::format("min_samples = {} has no effect where weights are distances; ask for mutual_reachability",
                    min_samples));
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
  const NarrowedRows narrowed("x", x, graph.metric(), resources);
  return tree_of(graph, &narrowed.view(), params, resources);
}

RowLabels SpanningTree::labels(double height, const Resources& resources) const {
  if (std::isnan(height)) throw InvalidArgument("height is nan; it must be a number");
  return within_limits("labels of rows", resources, [&](const Resources& used) {
    const RowSets sets(rows_, used);
    for_row_blocks("label rows", only_counts(used) ? 0 : size(), used, [&](int64_t first, int64_t end) {
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
    // Of each cluster, rows first: the one that it was joined into, and its rows.
    const HostArray<uint32_t> parent(2 * rows_, "clusters", resources);
    const HostArray<uint32_t> counts(2 * rows_, "clusters", resources);
    if (only_counts(resources)) return result;
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
