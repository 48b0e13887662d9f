// k-NN graphs: every method, merged, extended, refined; matrices, paths, spanning trees, files, recall.
#include "case.hpp"
#include "device_memory.hpp"

namespace hashes {
namespace {

using namespace kith;

// Rows and the parameters of a graph of them. Methods are named: what `automatic` chooses may depend on the device.
struct GraphData {
  Rows x;
  KnnGraphParams params;
};

Metric draw_graph_metric(Draws& draws) {
  return draws.chance(60) ? draws.of({Metric::l2, Metric::sqeuclidean, Metric::cosine}) : draw_metric(draws);
}

KnnGraphParams draw_params(Draws& draws, Metric metric, GraphMethod method) {
  KnnGraphParams params;
  params.k = draws.between(1, 20);
  params.metric = metric;
  params.method = method;
  params.recall = draws.of({0.8, 0.95, 0.99});
  params.seed = draws.bits();
  if (method == GraphMethod::cells) {
    if (draws.chance(50)) params.cells = draws.between(1, 16);
    if (draws.chance(50)) params.probes = draws.between(1, 8);
  }
  if (method == GraphMethod::nn_descent) {
    params.start = draws.of({GraphStart::random, GraphStart::cells});
    if (draws.chance(40)) params.samples = draws.between(2, 16);
    if (draws.chance(40)) params.list_length = params.k + draws.between(0, 12);
    if (draws.chance(40)) params.iterations = draws.between(1, 6);
    if (draws.chance(30)) params.delta = draws.of({0.0, 0.001, 0.05});
    params.update = draws.of({GraphUpdate::selective, GraphUpdate::selective, GraphUpdate::all});
  }
  return params;
}

GraphData draw_graph(Case& c, GraphMethod method, Metric metric, int64_t rows) {
  const Source source = draw_source(c.draws, metric);
  const DType dtype = draw_dtype(c.draws, metric);
  const int64_t cols = c.draws.chance(5) ? 300 : draw_cols(c.draws);
  GraphData data{Rows(source, dtype, 0, rows, cols, c.draws.chance(15) ? 3 : 0), {}};
  if (c.draws.chance(40)) data.x.move_to_device();
  data.params = draw_params(c.draws, metric, method);
  c.note(name_of(method));
  c.note(name_of(metric));
  c.note(data.x);
  c.note("k", data.params.k);
  return data;
}

GraphMethod method_of(const Case& c) {
  constexpr GraphMethod kMethods[] = {GraphMethod::exact, GraphMethod::cells, GraphMethod::nn_descent,
                                      GraphMethod::nn_descent};
  return kMethods[c.number % 4];
}

// knn_graph() into arrays of the caller's, in GPU memory where the run has one.
void hash_graph_into(Hash& hash, const GraphData& data, const Resources& resources) {
  const int64_t rows = data.x.rows();
  const int64_t k = data.params.k;
  std::vector<int64_t> ids(static_cast<size_t>(rows * k));
  std::vector<float> distances(static_cast<size_t>(rows * k));
  if (has_device()) {
    const auto device_ids = device_memory(rows * k * 8);
    const auto device_distances = device_memory(rows * k * 4);
    (void)knn_graph(data.x.view(),
                    {static_cast<int64_t*>(device_ids.get()), static_cast<float*>(device_distances.get()), rows, k,
                     MemorySpace::cuda(0)},
                    data.params, resources);
    copy_to_host(device_ids.get(), ids.data(), rows * k * 8);
    copy_to_host(device_distances.get(), distances.data(), rows * k * 4);
  } else {
    (void)knn_graph(data.x.view(), {ids.data(), distances.data(), rows, k, {}}, data.params, resources);
  }
  hash.add(NeighborsView{ids.data(), distances.data(), rows, k, {}});
}

void graph_case(Case& c) {
  const GraphMethod method = method_of(c);
  const Metric drawn = draw_graph_metric(c.draws);
  const bool of_centres = drawn == Metric::l2 || drawn == Metric::sqeuclidean || drawn == Metric::cosine;
  const Metric metric = method == GraphMethod::cells && !of_centres ? Metric::inner_product : drawn;
  const GraphData data =
      draw_graph(c, method, metric, c.draws.chance(15) ? c.draws.between(1, 30) : c.draws.between(31, 900));
  KnnGraph graph;
  const int64_t form = c.draws.between(0, 9);
  c.call("build", [&](Hash& hash) {
    if (form == 0) return hash_graph_into(hash, data, c.resources);
    graph = form == 1
                ? c.under_least_memory([&](const Resources& r) { return knn_graph(data.x.view(), data.params, r); })
                : knn_graph(data.x.view(), data.params, c.resources);
    hash.add(graph, c.resources);
  });
  if (graph.rows() == 0) return;
  c.call("report", [&](Hash& hash) { hash.add(graph.report()); });
  if (c.draws.chance(40)) {
    c.call("measure_recall", [&](Hash& hash) {
      hash.add(measure_recall(graph, data.x.view(), {.rows = 100, .seed = data.params.seed}, c.resources));
    });
  }
}

// What the library chooses, which may differ by device.
void automatic_case(Case& c) {
  const Metric metric = draw_graph_metric(c.draws);
  const GraphData data = draw_graph(c, GraphMethod::automatic, metric, c.draws.between(2, 1500));
  c.call("", [&](Hash& hash) { hash.add(knn_graph(data.x.view(), data.params, c.resources), c.resources); });
}

// The graph that matrices, paths and trees are made of: exact, of rows that may fall into parts.
KnnGraph draw_plain_graph(Case& c, Metric metric, Rows* x = nullptr) {
  const int64_t rows = c.draws.between(2, 400);
  GraphData data = draw_graph(c, GraphMethod::exact, metric, rows);
  data.params.k = std::min(data.params.k, rows - 1);
  KnnGraph graph = knn_graph(data.x.view(), data.params, c.resources);
  if (x != nullptr) *x = std::move(data.x);
  return graph;
}

Metric draw_true_distance(Draws& draws) {
  return draws.of(
      {Metric::l2, Metric::sqeuclidean, Metric::cosine, Metric::l1, Metric::linf, Metric::chi_square, Metric::hamming});
}

void matrices_case(Case& c) {
  const KnnGraph graph = draw_plain_graph(c, draw_true_distance(c.draws));
  const Resources& r = c.resources;
  c.call("in_degrees", [&](Hash& hash) { hash.ids(graph.in_degrees(r).as<int64_t>(), graph.rows()); });
  c.call("components", [&](Hash& hash) { hash.add(graph.components(r)); });
  c.call("reversed", [&](Hash& hash) { hash.add(graph.reversed(r)); });
  c.call("symmetric", [&](Hash& hash) { hash.add(graph.symmetric(r)); });
  c.call("mutual", [&](Hash& hash) { hash.add(graph.mutual(r)); });
  c.call("to_csr", [&](Hash& hash) { hash.add(graph.to_csr(r)); });
  c.call("to_umap", [&](Hash& hash) { hash.add(graph.to_umap(r)); });
  c.call("connectivities", [&](Hash& hash) { hash.add(graph.connectivities(r)); });
  c.call("given", [&](Hash& hash) {
    const KnnGraph here = graph.to(MemorySpace::host(), r);
    Neighbors copy(here.rows(), here.k(), r);
    std::copy_n(here.ids(), here.rows() * here.k(), copy.view().ids);
    std::copy_n(here.distances(), here.rows() * here.k(), copy.view().distances);
    const KnnGraph given(std::move(copy), here.metric(), r);
    given.validate(r);
    hash.add(given, r);
    hash.add(given.report());
  });
}

GraphMergeParams draw_merge_params(Draws& draws) {
  GraphMergeParams params;
  params.recall = draws.of({0.8, 0.95, 0.99});
  params.seed = draws.bits();
  if (draws.chance(30)) params.samples = draws.between(2, 16);
  if (draws.chance(30)) params.iterations = draws.between(1, 6);
  if (draws.chance(20)) params.delta = draws.of({0.0, 0.01});
  return params;
}

// Rows in parts, with an exact graph of each.
std::vector<GraphPart> draw_parts(Case& c, const Rows& x, Metric metric, int64_t k, int64_t count) {
  std::vector<GraphPart> parts;
  int64_t first = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t end = x.rows() * (i + 1) / count;
    const MatrixView part = x.view().slice(first, end - first);
    parts.push_back({knn_graph(part, {.k = k, .metric = metric, .method = GraphMethod::exact}, c.resources), part});
    first = end;
  }
  return parts;
}

void hash_into(Hash& hash, const Neighbors& out, const GraphReport& report) {
  hash.add(out);
  hash.add(report);
}

void merge_case(Case& c) {
  const Metric metric = draw_graph_metric(c.draws);
  const int64_t rows = c.draws.between(60, 700);
  const GraphData data = draw_graph(c, GraphMethod::exact, metric, rows);
  const int64_t k = data.params.k;
  const GraphMergeParams params = draw_merge_params(c.draws);
  const int64_t form = c.draws.between(0, 3);
  const int64_t fresh = form == 2 ? c.draws.between(1, rows / 2) : 0;
  const int64_t count = form == 1 ? c.draws.between(2, 4) : 2;
  const bool into = c.draws.chance(25);
  const Resources& r = c.resources;
  Neighbors out(into ? rows : 0, into ? k : 0, r);
  KnnGraph graph;
  if (form == 0) {
    c.call("two", [&](Hash& hash) {
      const std::vector<GraphPart> parts = draw_parts(c, data.x, metric, k, 2);
      graph = merge_graphs(parts[0].graph, parts[0].x, parts[1].graph, parts[1].x, params, r);
      hash.add(graph, r);
    });
  } else if (form == 1) {
    c.call("many", [&](Hash& hash) {
      const std::vector<GraphPart> parts = draw_parts(c, data.x, metric, k, count);
      if (into) return hash_into(hash, out, merge_graphs(parts, out.view(), params, r));
      graph = merge_graphs(parts, params, r);
      hash.add(graph, r);
    });
  } else if (form == 2) {
    c.call("extend", [&](Hash& hash) {
      const MatrixView old = data.x.view().slice(0, rows - fresh);
      const KnnGraph before = knn_graph(old, {.k = k, .metric = metric, .method = GraphMethod::exact}, r);
      const MatrixView added = data.x.view().slice(rows - fresh, fresh);
      if (into) return hash_into(hash, out, extend_graph(before, old, added, out.view(), params, r));
      graph = extend_graph(before, old, added, params, r);
      hash.add(graph, r);
    });
  } else {
    c.call("refine", [&](Hash& hash) {
      const KnnGraph before = knn_graph(data.x.view(),
                                        {.k = k,
                                         .metric = metric,
                                         .method = GraphMethod::nn_descent,
                                         .seed = params.seed,
                                         .start = GraphStart::random,
                                         .iterations = 1},
                                        r);
      if (into) return hash_into(hash, out, refine_graph(before, data.x.view(), out.view(), params, r));
      graph = refine_graph(before, data.x.view(), params, r);
      hash.add(graph, r);
    });
  }
  if (graph.rows() > 0) c.call("report", [&](Hash& hash) { hash.add(graph.report()); });
}

void paths_case(Case& c) {
  const KnnGraph graph = draw_plain_graph(c, draw_true_distance(c.draws));
  std::vector<int64_t> pairs;
  for (int i = 0; i < 40; ++i) pairs.push_back(c.draws.between(0, graph.rows() - 1));
  c.call("widths", [&](Hash& hash) {
    const SmoothPaths paths(graph, c.resources);
    hash.number(paths.parts());
    std::vector<float> widths(20);
    paths.widths(pairs.data(), 20, widths.data(), c.resources);
    hash.add(widths);
    hash.real(paths.width(pairs[0], pairs[1]));
  });
  for (const PathBy by : {PathBy::steps, PathBy::tree}) {
    c.call(name_of(by), [&](Hash& hash) {
      const SmoothPaths paths(graph, c.resources);
      for (size_t i = 0; i < pairs.size(); i += 2) {
        const SmoothPath path = paths.path(pairs[i], pairs[i + 1], by, c.resources);
        hash.real(path.width);
        hash.ids(path.begin(), path.size);
      }
    });
  }
}

void tree_case(Case& c) {
  Rows x;
  const Metric metric = draw_true_distance(c.draws);
  const KnnGraph graph = draw_plain_graph(c, metric, &x);
  SpanningTreeParams params;
  params.weights = c.draws.of({EdgeWeights::distance, EdgeWeights::mutual_reachability});
  if (params.weights == EdgeWeights::mutual_reachability && c.draws.chance(50)) {
    params.min_samples = c.draws.between(1, graph.k());
  }
  params.unconnected = c.draws.of({Unconnected::at_inf, Unconnected::nearest});
  c.note(name_of(params.weights));
  c.note(name_of(params.unconnected));
  SpanningTree tree;
  c.call("tree", [&](Hash& hash) {
    tree = params.unconnected == Unconnected::nearest ? spanning_tree(graph, x.host(), params, c.resources)
                                                      : spanning_tree(graph, params, c.resources);
    hash.add(tree);
  });
  if (tree.size() == 0) return;
  c.call("linkage", [&](Hash& hash) {
    const HostBuffer linkage = tree.single_linkage(c.resources);
    for (int64_t i = 0; i < 4 * tree.size(); ++i) hash.real(linkage.as<double>()[i]);
  });
  c.call("labels", [&](Hash& hash) { hash.add(tree.labels(tree.weights()[tree.size() / 2], c.resources)); });
}

void graph_file_case(Case& c) {
  const Metric metric = draw_true_distance(c.draws);
  const KnnGraph graph = draw_plain_graph(c, metric);
  const std::string ids = c.path(c.draws.of({"graph.npy", "graph.ibin", "graph.ivecs", "graph.hdf5::ids"}));
  const std::string distances = c.path(c.draws.of({"far.npy", "far.fbin", "far.fvecs", "far.hdf5::distances"}));
  c.note(file_of(ids).substr(ids.rfind('/')));
  c.call("save", [&](Hash& hash) {
    save_graph(graph, ids, distances, c.resources);
    hash.file(file_of(ids));
    hash.file(file_of(distances));
  });
  c.call("load", [&](Hash& hash) { hash.add(load_graph(ids, distances, metric, c.resources), c.resources); });
}

}  // namespace

std::vector<EntryPoint> graph_cases() {
  return {{"graph", 280, graph_case},         {"graph_auto", 16, automatic_case}, {"graph_matrices", 40, matrices_case},
          {"graph_merge", 100, merge_case},   {"graph_paths", 50, paths_case},    {"graph_tree", 70, tree_case},
          {"graph_file", 40, graph_file_case}};
}

}  // namespace hashes
