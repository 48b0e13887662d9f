// Exact search: knn, range_search, pairwise_distances, custom metrics, recall, and the names of things.
#include "case.hpp"
#include "device_memory.hpp"

namespace hashes {
namespace {

using namespace kith;

constexpr Metric kMetrics[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine,
                               Metric::l1, Metric::linf,        Metric::chi_square,    Metric::hamming};

// Cases take the metrics in turn.
Metric metric_of(const Case& c) { return kMetrics[c.number % 8]; }

// knn() into arrays of the caller's, in GPU memory where the run has one.
void hash_knn_into(Hash& hash, const SearchData& data, const KnnParams& params, const Resources& resources) {
  const int64_t count = data.queries.rows() * params.k;
  std::vector<int64_t> ids(static_cast<size_t>(count));
  std::vector<float> distances(static_cast<size_t>(count));
  if (has_device()) {
    const auto device_ids = device_memory(count * 8);
    const auto device_distances = device_memory(count * 4);
    knn(data.queries.view(), data.base.view(),
        {static_cast<int64_t*>(device_ids.get()), static_cast<float*>(device_distances.get()), data.queries.rows(),
         params.k, MemorySpace::cuda(0)},
        params, resources);
    copy_to_host(device_ids.get(), ids.data(), count * 8);
    copy_to_host(device_distances.get(), distances.data(), count * 4);
  } else {
    knn(data.queries.view(), data.base.view(), {ids.data(), distances.data(), data.queries.rows(), params.k, {}},
        params, resources);
  }
  hash.add(NeighborsView{ids.data(), distances.data(), data.queries.rows(), params.k, {}});
}

void hash_knn(Case& c, const SearchData& data) {
  KnnParams params{.k = draw_k(c.draws, data.base.rows()), .metric = data.metric};
  params.check_finite = c.draws.chance(80);
  DrawnFilter filter;
  if (c.draws.chance(30)) {
    filter = draw_filter(c.draws, data.base.rows());
    params.filter = filter.filter;
  }
  c.note(data);
  c.note("k", params.k);
  const int64_t form = c.draws.between(0, 9);
  c.call("", [&](Hash& hash) {
    if (form < 2) {
      hash_knn_into(hash, data, params, c.resources);
    } else if (form == 2) {
      hash.add(c.under_least_memory(
          [&](const Resources& limited) { return knn(data.queries.view(), data.base.view(), params, limited); }));
    } else {
      hash.add(knn(data.queries.view(), data.base.view(), params, c.resources));
    }
  });
}

void knn_case(Case& c) {
  SearchShape shape;
  shape.queries = c.draws.of<int64_t>({1, 1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 40});
  shape.rows = draw_rows(c.draws);
  shape.cols = draw_cols(c.draws);
  hash_knn(c, draw_search_data(c.draws, metric_of(c), shape));
}

void knn_wide_case(Case& c) {
  SearchShape shape;
  shape.queries = c.draws.between(1, 20);
  shape.rows = c.draws.between(1, 300);
  shape.cols = c.draws.of<int64_t>({200, 256, 257, 384, 511, 768, 960, 1024, 1536});
  hash_knn(c, draw_search_data(c.draws, metric_of(c), shape));
}

// Many rows or many queries: several tiles, batches and chunks.
void knn_long_case(Case& c) {
  const bool many_rows = c.draws.chance(50);
  SearchShape shape;
  shape.queries = many_rows ? c.draws.between(1, 20) : c.draws.between(200, 1100);
  shape.rows = many_rows ? c.draws.between(3000, 9000) : c.draws.between(300, 1100);
  shape.cols = c.draws.of<int64_t>({2, 8, 15, 16, 32});
  hash_knn(c, draw_search_data(c.draws, metric_of(c), shape));
}

Rows infinite_rows(Case& c, Metric metric, int64_t first, int64_t rows, int64_t cols) {
  const DType dtype = c.draws.of({DType::f32, DType::f16, DType::bf16});
  const Source source{.pattern = Pattern::infinite, .key = c.draws.bits(), .negative = metric != Metric::chi_square};
  return Rows(source, dtype, first, rows, cols);
}

void knn_infinite_case(Case& c) {
  const Metric metric = kMetrics[c.number % 6];
  const int64_t rows = c.draws.between(1, 200);
  const int64_t cols = c.draws.between(1, 20);
  SearchData data{metric, infinite_rows(c, metric, 0, rows, cols), infinite_rows(c, metric, rows, 7, cols)};
  const int64_t k = c.draws.between(1, 30);
  c.note(data);
  c.call("", [&](Hash& hash) {
    hash.add(
        knn(data.queries.view(), data.base.view(), {.k = k, .metric = metric, .check_finite = false}, c.resources));
  });
}

// A radius that some rows are within: the distance of a neighbour of the first query.
float draw_radius(Case& c, const SearchData& data) {
  const int64_t k = std::min(data.base.rows(), c.draws.of<int64_t>({1, 2, 5, 10, 50, 200}));
  const Neighbors near = knn(data.queries.host().slice(0, 1), data.base.host(), {.k = k, .metric = data.metric},
                             c.resources.with_device(Device::cpu()));
  return near.distances()[k - 1];
}

// A result in host memory, wherever it lies.
void hash_range(Hash& hash, const RangeNeighbors& found) {
  if (found.space().host_readable()) {
    hash.add(found.view());
    return;
  }
  std::vector<int64_t> offsets(static_cast<size_t>(found.queries() + 1));
  std::vector<int64_t> ids(static_cast<size_t>(found.size() + 1));
  std::vector<float> distances(static_cast<size_t>(found.size() + 1));
  copy_to_host(found.offsets(), offsets.data(), (found.queries() + 1) * 8);
  copy_to_host(found.ids(), ids.data(), found.size() * 8);
  copy_to_host(found.distances(), distances.data(), found.size() * 4);
  hash.add(RangeView{offsets.data(), ids.data(), distances.data(), found.queries()});
}

void range_case(Case& c) {
  SearchShape shape;
  shape.queries = c.draws.of<int64_t>({1, 2, 3, 5, 8, 17, 33});
  shape.rows = draw_rows(c.draws);
  shape.cols = draw_cols(c.draws);
  const SearchData data = draw_search_data(c.draws, metric_of(c), shape);
  RangeParams params;
  params.metric = data.metric;
  params.radius = draw_radius(c, data);
  params.check_finite = c.draws.chance(80);
  DrawnFilter filter;
  if (c.draws.chance(30)) {
    filter = draw_filter(c.draws, data.base.rows());
    params.filter = filter.filter;
  }
  if (c.draws.chance(30) && has_device()) params.result_space = MemorySpace::cuda(0);
  const bool limited = c.draws.chance(10) && params.result_space.host_readable();
  c.note(data);
  c.call("", [&](Hash& hash) {
    if (limited) {
      hash_range(hash, c.under_least_memory([&](const Resources& resources) {
        return range_search(data.queries.view(), data.base.view(), params, resources);
      }));
    } else {
      hash_range(hash, range_search(data.queries.view(), data.base.view(), params, c.resources));
    }
  });
}

void pairwise_case(Case& c) {
  SearchShape shape;
  shape.queries = c.draws.of<int64_t>({1, 2, 5, 16, 17, 31, 64, 65});
  shape.rows = c.draws.between(1, 140);
  shape.cols = c.draws.chance(5) ? 1536 : draw_cols(c.draws);
  const SearchData data = draw_search_data(c.draws, metric_of(c), shape);
  const PairwiseParams params{.metric = data.metric, .check_finite = c.draws.chance(80)};
  const int64_t gap = c.draws.chance(30) ? c.draws.between(1, 4) : 0;
  c.note(data);
  c.call("", [&](Hash& hash) {
    if (gap == 0) {
      hash.add(pairwise_distances(data.queries.view(), data.base.view(), params, c.resources).view());
      return;
    }
    std::vector<float> out(static_cast<size_t>(shape.queries * (shape.rows + gap)), -1.0f);
    const MutableMatrixView to(out.data(), DType::f32, {shape.queries, shape.rows, shape.rows + gap});
    pairwise_distances(data.queries.view(), data.base.view(), to, params, c.resources);
    hash.add(out);
  });
}

// Several blocks of queries, over rows that are enough for a screen and wide enough for tiles.
void knn_blocks_case(Case& c) {
  SearchShape shape;
  shape.queries = c.number % 2 == 0 ? 300 : 1100;
  shape.rows = c.draws.between(2048, 3000);
  shape.cols = c.draws.of<int64_t>({32, 48, 64, 100});
  const Metric metric = kMetrics[c.number / 2 % 8];
  hash_knn(c, draw_search_data(c.draws, metric, shape));
}

void custom_knn_case(Case& c) {
  SearchShape shape;
  shape.queries = c.draws.between(1, 20);
  shape.rows = draw_rows(c.draws);
  shape.cols = draw_cols(c.draws);
  const SearchData data = draw_search_data(c.draws, Metric::l1, shape);
  CustomKnnParams params;
  params.k = draw_k(c.draws, shape.rows);
  DrawnFilter filter;
  if (c.draws.chance(30)) {
    filter = draw_filter(c.draws, shape.rows);
    params.filter = filter.filter;
  }
  c.note(data);
  c.call("", [&](Hash& hash) {
    hash.add(has_device() ? knn_by_on_device(Canberra{}, data.queries.view(), data.base.view(), params, c.resources)
                          : knn_by(Canberra{}, data.queries.view(), data.base.view(), params, c.resources));
  });
}

void custom_graph_case(Case& c) {
  const int64_t rows = c.draws.between(2, 300);
  const Source source = draw_source(c.draws, Metric::l1);
  const DType dtype = draw_dtype(c.draws, Metric::l1);
  const int64_t cols = c.draws.between(1, 32);
  Rows x(source, dtype, 0, rows, cols);
  if (c.draws.chance(30)) x.move_to_device();
  CustomGraphParams params;
  params.k = c.draws.between(1, 20);
  params.seed = c.draws.bits();
  params.recall = c.draws.of({0.8, 0.95, 0.99});
  if (c.draws.chance(40)) params.iterations = c.draws.between(1, 5);
  if (c.draws.chance(40)) params.samples = c.draws.between(2, 16);
  if (c.draws.chance(30)) params.update = GraphUpdate::all;
  c.note(x);
  c.call("", [&](Hash& hash) {
    const CustomGraph graph = has_device() ? knn_graph_by_on_device(Canberra{}, x.view(), params, c.resources)
                                           : knn_graph_by(Canberra{}, x.view(), params, c.resources);
    hash.add(graph.neighbors);
    hash.add(graph.report);
  });
}

void recall_case(Case& c) {
  const int64_t rows = c.draws.between(1, 50);
  const int64_t cols = c.draws.between(1, 20);
  std::vector<int64_t> truth;
  std::vector<int64_t> found;
  for (int64_t i = 0; i < rows * cols; ++i) {
    truth.push_back(i % cols * 3);
    found.push_back(c.draws.between(-1, cols * 3));
  }
  const int64_t k = c.draws.between(1, cols);
  c.call("", [&](Hash& hash) {
    hash.real(one_recall({found.data(), rows, cols}, {truth.data(), rows, cols}, k));
    hash.real(k_recall({found.data(), rows, cols}, {truth.data(), rows, cols}, k));
  });
}

// Input that every function must refuse, with the same type of error.
void refused_case(Case& c) {
  const Source source{.pattern = Pattern::bell, .key = c.draws.bits()};
  const Rows x(source, DType::f32, 0, 20, 8);
  const Rows y(source, DType::f32, 0, 20, 7);
  const Rows nan({.pattern = Pattern::infinite, .key = c.draws.bits()}, DType::f32, 0, 50, 8);
  c.call("", [&](Hash& hash) {
    const Resources& r = c.resources;
    switch (c.number) {
      case 0: return hash.add(knn(x.host(), y.host(), {.k = 3}, r));
      case 1: return hash.add(knn(x.host(), x.host(), {.k = 0}, r));
      case 2: return hash.add(knn(x.host(), nan.host(), {.k = 3}, r));
      case 3: return hash.add(knn(x.host(), x.host(), {.k = 3, .metric = Metric::hamming}, r));
      case 4: return hash.add(knn(x.host(), x.host(), {.k = 3, .metric = Metric::chi_square}, r));
      case 5: return hash_range(hash, range_search(x.host(), nan.host(), {.radius = 1}, r));
      case 6: return hash.add(pairwise_distances(x.host(), y.host(), {}, r).view());
      case 7: return hash.add(knn_graph(nan.host(), {.method = GraphMethod::nn_descent}, r), r);
      case 8:
        return hash.add(VectorFile(c.path("absent.fbin")).rows() > 0 ? std::vector<int64_t>{1}
                                                                     : std::vector<int64_t>{});
      case 9: return hash.text(Index("IVF8,Nothing").factory());
      case 10: return hash.text(Index("IVF8").factory());
      case 11: return hash.add(Index("SQ8").search(x.host(), {}, r));
      case 12: return Index("PQ3").train(x.host(), r);
      case 13: return KMeans({.clusters = 30}).fit(x.host(), {}, r);
      case 14: return KMeans({.clusters = 0}).fit(x.host(), {}, r);
      case 15: return VectorTransform({.steps = "PCA9"}).train(x.host(), r);
      case 16: return VectorTransform({.steps = "Nothing"}).train(x.host(), r);
      case 17: return hash.text(name_of(parse_metric("L2")));
      case 18: return hash.text(name_of(make_quantizer("XQ8")));
      case 19: return hash.text(name_of(parse_dtype("f64")));
      case 20: return MatrixView(nullptr, DType::f32, {2, 2, 2}).empty() ? hash.number(1) : hash.number(0);
      case 21: return hash.number(MatrixView(x.host()).slice(15, 10).rows());
      case 22: {
        const CancelToken cancel;
        cancel.request();
        return hash.add(knn(x.host(), x.host(), {.k = 3}, r.with_cancel(cancel)));
      }
      default: {
        ResourceOptions options;
        options.threads = -1;
        return hash.number(Resources(options).threads());
      }
    }
  });
}

void names_case(Case& c) {
  c.call("", [](Hash& hash) {
    hash.text(version());
    for (const Metric metric : kMetrics) hash.text(name_of(parse_metric(name_of(metric))));
    for (const char* name : {"euclidean", "manhattan", "cityblock", "chebyshev", "ip", "dot", "l2sq"}) {
      hash.text(name_of(parse_metric(name)));
    }
    for (const char* name : {"f32", "f16", "bf16", "u8", "i8"}) hash.number(size_of(parse_dtype(name)));
    for (const char* name : {"auto", "cpu", "cuda", "cuda:3"}) hash.text(name_of(parse_device(name)));
    for (const char* name : {"auto", "exact", "cells", "nn_descent"}) hash.text(name_of(parse_graph_method(name)));
    for (const char* name : {"auto", "random", "cells"}) hash.text(name_of(parse_graph_start(name)));
    for (const char* name : {"selective", "all"}) hash.text(name_of(parse_graph_update(name)));
    for (const char* name : {"steps", "tree"}) hash.text(name_of(parse_path_by(name)));
    for (const char* name : {"distance", "mutual_reachability"}) hash.text(name_of(parse_edge_weights(name)));
    for (const char* name : {"refuse", "at_inf", "nearest"}) hash.text(name_of(parse_unconnected(name)));
    for (const char* name : {"opq", "residual", "random"}) hash.text(name_of(parse_additive_start(name)));
    for (const char* name : {"greedy", "random", "given"}) hash.text(name_of(parse_code_start(name)));
    for (const char* name : {"fixed", "random"}) hash.text(name_of(parse_sweep_order(name)));
    for (const char* name : {"kmeans++", "random", "given"}) hash.text(name_of(parse_kmeans_init(name)));
    for (const char* name : {"PQ16", "PQ32x4", "SQ8", "SQ6", "SQ4", "SQfp16", "LSQ8x8", "RQ8x8"}) {
      hash.text(name_of(make_quantizer(name)));
    }
  });
}

}  // namespace

std::vector<EntryPoint> exact_cases() {
  return {{"knn", 1200, knn_case},           {"knn_wide", 48, knn_wide_case},
          {"knn_long", 64, knn_long_case},   {"knn_infinite", 60, knn_infinite_case},
          {"range_search", 560, range_case}, {"pairwise_distances", 320, pairwise_case},
          {"knn_by", 120, custom_knn_case},  {"knn_graph_by", 40, custom_graph_case},
          {"recall", 30, recall_case},       {"refused", 24, refused_case},
          {"names", 1, names_case},          {"knn_blocks", 16, knn_blocks_case}};
}

}  // namespace hashes
