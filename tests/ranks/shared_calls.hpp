// Calls that several devices share have the bytes of one: the same checks for parts of a CPU and of a GPU.
#pragma once

#include <kith/error.hpp>
#include <kith/graph_merge.hpp>
#include <kith/index.hpp>
#include <kith/kmeans.hpp>
#include <kith/knn.hpp>
#include <kith/knn_graph.hpp>
#include <kith/local_search_quantizer.hpp>
#include <kith/pairwise_distances.hpp>
#include <kith/product_quantizer.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>

#include "cluster/fitted.hpp"
#include "reference/data.hpp"
#include "reference/taken_params.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace kith::shared {

inline Resources on(const std::string& devices, int threads = 2) {
  ResourceOptions options;
  options.devices = parse_devices(devices);
  options.threads = threads;
  return Resources(options);
}

// Ids and the bits of distances.
struct Found {
  std::vector<int64_t> offsets;
  std::vector<int64_t> ids;
  std::vector<uint32_t> distances;
  bool operator==(const Found&) const = default;
};

inline Found found_in(const int64_t* ids, const float* distances, int64_t count) {
  Found found{{}, {ids, ids + count}, {}};
  for (int64_t i = 0; i < count; ++i) found.distances.push_back(std::bit_cast<uint32_t>(distances[i]));
  return found;
}
inline Found found_in(const Neighbors& result) {
  return found_in(result.ids(), result.distances(), result.queries() * result.k());
}
inline Found found_in(const RangeNeighbors& result) {
  Found found = found_in(result.ids(), result.distances(), result.size());
  found.offsets.assign(result.offsets(), result.offsets() + result.queries() + 1);
  return found;
}

// More devices than rows, and than queries; one query; ties across the parts.
inline void expect_knn(const Resources& one, const Resources& several) {
  using reference::Shape;
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
    for (const Shape shape : {Shape::gaussian, Shape::near_duplicates, Shape::all_equal}) {
      for (const int64_t rows : {1, 2, 4, 37, 1300}) {
        for (const int64_t queries : {1, 2, 7, 130, 400}) {
          const auto base = reference::make_floats(shape, rows, 9, 1);
          const auto asked = reference::make_floats(shape, queries, 9, 2);
          KnnParams params{.k = 5, .metric = metric};
          const std::string what = std::string(name_of(metric)) + ", " + std::string(reference::name_of(shape)) + ", " +
                                   std::to_string(rows) + " rows, " + std::to_string(queries) + " queries";
          EXPECT_EQ(found_in(knn(asked.view(), base.view(), params, several)),
                    found_in(knn(asked.view(), base.view(), params, one)))
              << what;
          std::vector<uint8_t> keep(static_cast<size_t>(rows));
          for (size_t i = 0; i < keep.size(); ++i) keep[i] = i % 3 != 1;
          params.filter = RowFilter::mask(keep.data(), rows);
          EXPECT_EQ(found_in(knn(asked.view(), base.view(), params, several)),
                    found_in(knn(asked.view(), base.view(), params, one)))
              << what << ", filtered";
        }
      }
    }
  }
  const auto base = reference::make_floats(Shape::gaussian, 700, 9, 1);
  const auto asked = reference::make_floats(Shape::gaussian, 41, 9, 2);
  EXPECT_EQ(found_in(range_search(asked.view(), base.view(), {.radius = 3.5f}, several)),
            found_in(range_search(asked.view(), base.view(), {.radius = 3.5f}, one)));
  const MatrixBuffer expected = pairwise_distances(asked.view(), base.view(), {}, one);
  const MatrixBuffer distances = pairwise_distances(asked.view(), base.view(), {}, several);
  EXPECT_EQ(std::memcmp(distances.view().data(), expected.view().data(), 41 * 700 * sizeof(float)), 0);
}

inline void expect_kmeans(const Resources& one, const Resources& several) {
  using reference::Shape;
  for (const int64_t rows : {3, 900, 5000}) {
    for (const Shape shape : {Shape::gaussian, Shape::near_duplicates}) {
      KMeansParams params;
      params.clusters = std::min<int64_t>(rows, 40);
      params.iterations = 4;
      const auto data = reference::make_floats(shape, rows, 7, 3);
      KMeans expected(params);
      expected.fit(data.view(), {}, one);
      KMeans model(params);
      model.fit(data.view(), {}, several);
      EXPECT_EQ(taken(model), taken(expected)) << rows << " rows, " << reference::name_of(shape);
    }
  }
}

inline Fitted fitted_on(const Resources& resources, const MatrixView& rows, const KMeansParams& params,
                        const KMeansInput& input = {}) {
  KMeans model(params);
  model.fit(rows, input, resources);
  return taken(model);
}

// Every kind of fit: few centres and many, weights, directions, mini-batches, samples, candidates drawn in rounds, empty
// centres, values of a byte.
template <typename Fit>
void expect_kinds_of_kmeans(const Resources& one, const Fit& fit_on_several) {
  using reference::Shape;
  const auto rows = reference::make_floats(Shape::gaussian, 6000, 8, 4);
  std::vector<float> weights;
  for (int i = 0; i < 6000; ++i) weights.push_back(static_cast<float>(i % 4));
  KMeansInput weighted;
  weighted.weights = {weights.data(), 6000, {}};
  const auto expect = [&](const char* what, const MatrixView& data, const KMeansParams& params,
                          const KMeansInput& input = {}) {
    EXPECT_EQ(fit_on_several(data, params, input), fitted_on(one, data, params, input)) << what;
  };
  KMeansParams plain;
  plain.clusters = 12;
  plain.iterations = 4;
  expect("plain", rows.view(), plain);
  expect("weights", rows.view(), plain, weighted);
  KMeansParams params = plain;
  params.clusters = 1;
  expect("one centre", rows.view(), params);
  params.clusters = 200;
  expect("many centres", rows.view(), params, weighted);
  params = plain;
  params.spherical = true;
  expect("spherical", rows.view(), params);
  params = plain;
  params.n_init = 2;
  params.history = false;
  params.tol = 0;
  expect("two starts", rows.view(), params);
  params = plain;
  params.batch_size = 1500;
  expect("mini-batches", rows.view(), params, weighted);
  params = plain;
  params.max_points_per_centre = 100;
  expect("a sample", rows.view(), params);
  params = plain;
  params.init = KMeansInit::random;
  params.compute_labels = false;
  expect("random centres", rows.view(), params);
  const auto bytes = reference::make_bytes(9000, 6, 3);
  params = plain;
  params.clusters = 40;
  expect("bytes", bytes.view(), params);
  const auto wide = reference::make_floats(Shape::gaussian, 4100, 300, 2);
  params = plain;
  params.clusters = 900;
  params.iterations = 1;
  expect("candidates drawn in rounds", wide.view(), params);
  // Centres that lie where no row is begin empty and are filled.
  auto centres = reference::make_floats(Shape::gaussian, 9, 8, 6);
  for (int64_t c = 3; c < 9; ++c) centres.row(c)[0] = 1000.0f + static_cast<float>(c);
  KMeansInput given;
  given.centres = centres.view();
  params = plain;
  params.clusters = 9;
  params.init = KMeansInit::given;
  expect("empty centres", rows.view(), params, given);
}

template <typename Quantizer, typename Params>
void expect_codes(const Params& params, const Resources& one, const Resources& several) {
  const auto rows = reference::make_floats(reference::Shape::gaussian, 1000, 16, 5);
  Quantizer quantizer(params);
  quantizer.train(rows.view(), one);
  for (const int64_t count : {1, 2, 999}) {
    const int64_t bytes = quantizer.code_bytes();
    std::vector<uint8_t> expected(static_cast<size_t>(count * bytes));
    std::vector<uint8_t> codes(expected.size());
    quantizer.encode(rows.view().slice(0, count), MutableMatrixView(expected.data(), count, bytes), one);
    quantizer.encode(rows.view().slice(0, count), MutableMatrixView(codes.data(), count, bytes), several);
    EXPECT_EQ(codes, expected) << count << " rows";
  }
}

inline void expect_encoding(const Resources& one, const Resources& several) {
  ProductQuantizerParams product;
  product.parts = 4;
  product.bits = 6;
  expect_codes<ProductQuantizer>(product, one, several);
  LocalSearchParams local;
  local.codebooks = 3;
  local.bits = 4;
  local.rounds = 2;
  expect_codes<LocalSearchQuantizer>(local, one, several);
}

// What a build tells of itself beside its graph, but for time and memory.
inline std::vector<double> told_by(const GraphReport& report) {
  std::vector<double> told{report.reached ? 1.0 : 0.0, report.recall ? report.recall->recall : -1,
                           report.forecast ? static_cast<double>(report.forecast->comparisons) : -1};
  for (const GraphRound& round : report.rounds) {
    told.insert(told.end(), {static_cast<double>(round.comparisons), static_cast<double>(round.updates), round.phi,
                             round.recall.value_or(-1)});
  }
  return told;
}

inline void expect_graph(const MatrixView& rows, const KnnGraphParams& params, const Resources& one,
                         const Resources& several) {
  const KnnGraph expected = knn_graph(rows, params, one);
  const KnnGraph graph = knn_graph(rows, params, several);
  const std::string what = std::string(name_of(params.method)) + " of " + std::to_string(rows.rows()) + " rows by " +
                           std::string(name_of(params.metric)) + ", k = " + std::to_string(params.k);
  EXPECT_EQ(found_in(graph.ids(), graph.distances(), rows.rows() * params.k),
            found_in(expected.ids(), expected.distances(), rows.rows() * params.k))
      << what;
  EXPECT_EQ(graph.report().method, expected.report().method) << what;
  if (one.device().kind != several.device().kind) return;  // rounds of the CPU and a GPU are not told alike
  EXPECT_EQ(told_by(graph.report()), told_by(expected.report())) << what;
}

// By every method; fewer rows than parts; equal rows; lists longer than a share of the rows; metrics that are no product.
inline void expect_graphs(const Resources& one, const Resources& several) {
  using reference::Shape;
  for (const Shape shape : {Shape::near_duplicates, Shape::all_equal}) {
    const auto rows = reference::make_floats(shape, 1200, 8, 9);
    for (const int64_t count : {2, 7, 40, 1200}) {
      const MatrixView some = rows.view().slice(0, count);
      expect_graph(some, {.k = 6, .method = GraphMethod::exact}, one, several);
      expect_graph(some, {.k = 6}, one, several);
      expect_graph(some, {.k = 1, .method = GraphMethod::cells}, one, several);
      for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
        expect_graph(some, {.k = 6, .metric = metric, .method = GraphMethod::cells}, one, several);
      }
    }
  }
  const auto rows = reference::make_floats(Shape::gaussian, 3000, 8, 3);
  expect_graph(rows.view(), {.k = 5, .method = GraphMethod::cells}, one, several);
  expect_graph(rows.view().slice(0, 900), {.k = 5, .method = GraphMethod::nn_descent}, one, several);
  expect_graph(rows.view().slice(0, 900), {.k = 5, .metric = Metric::l1}, one, several);
  expect_graph(rows.view(), {.k = 400, .method = GraphMethod::cells, .probes = 4}, one, several);
  const auto bytes = reference::make_bytes(2000, 24, 5);
  expect_graph(bytes.view(), {.k = 6, .method = GraphMethod::cells}, one, several);
  for (const int64_t shards : {1, 2, 3, 7}) {
    expect_graph(rows.view().slice(0, 900), {.k = 6, .method = GraphMethod::ggm, .shards = shards}, one, several);
  }
}

// Rounds of NN-Descent, all of which must do the same: lists that begin with random rows or by cells, fewer rows than the
// lists have room for, equal rows, every metric's kind, offers of all pairs.
inline void expect_rounds(const Resources& one, const Resources& several) {
  using reference::Shape;
  const auto by_rounds = [](Metric metric, GraphStart start) {
    return KnnGraphParams{.k = 6, .metric = metric, .method = GraphMethod::nn_descent, .recall = 0.999, .start = start};
  };
  for (const Shape shape : {Shape::gaussian, Shape::near_duplicates, Shape::all_equal}) {
    const auto rows = reference::make_floats(shape, 1100, 24, 5);
    for (const int64_t count : {3, 70, 1100}) {
      expect_graph(rows.view().slice(0, count), by_rounds(Metric::l2, GraphStart::random), one, several);
    }
  }
  const auto rows = reference::make_floats(Shape::gaussian, 2600, 32, 8);
  for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
    expect_graph(rows.view(), by_rounds(metric, GraphStart::cells), one, several);
  }
  expect_graph(rows.view().slice(0, 1000), by_rounds(Metric::linf, GraphStart::random), one, several);
  KnnGraphParams all = by_rounds(Metric::l2, GraphStart::random);
  all.update = GraphUpdate::all;
  all.samples = 7;
  all.list_length = 20;
  expect_graph(rows.view(), all, one, several);
  const auto bytes = reference::make_bytes(1500, 40, 5);
  expect_graph(bytes.view(), by_rounds(Metric::l2, GraphStart::random), one, several);
}

// Searches of so many queries that the lists of shards are ranked once.
inline void expect_many_queries(const Resources& one, const std::vector<DeviceParts>& devices) {
  using reference::Shape;
  const auto rows = reference::make_floats(Shape::near_duplicates, 1500, 16, 7);
  auto asked = reference::make_floats(Shape::near_duplicates, 300, 16, 8);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
    for (const char* factory : {"IVF20,Flat", "IVF20,PQ4x4"}) {
      IndexParams params;
      params.metric = metric;
      Index plain(factory, params);
      plain.train(rows.view(), one);
      plain.add(rows.view(), Ownership::copy, one);
      const Index shards = plain.to({devices, 1});
      for (const int64_t k : {5, 400}) {  // of 400 most lists hold too few
        EXPECT_EQ(found_in(shards.search(asked.view(), {.k = k, .probes = 3})),
                  found_in(plain.search(asked.view(), {.k = k, .probes = 3}, one)))
            << factory << " by " << name_of(metric) << ", k = " << k;
      }
    }
  }
  Index index("IVF20,SQ8");
  index.train(rows.view(), one);
  index.add(rows.view(), Ownership::copy, one);
  asked.values[16 * 250 + 3] = std::numeric_limits<float>::quiet_NaN();
  try {
    (void)index.to({devices, 1}).search(asked.view(), {.k = 5, .probes = 3});
    ADD_FAILURE() << "nothing was refused";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("query row 250"), std::string::npos) << error.what();
  }
}

// Searches of every kind by calls that name `several`, and by indexes with every number of copies, after a first and a
// second add, a removal and in a file.
inline void expect_index(const std::string& factory, const Resources& one, const Resources& several) {
  using reference::Shape;
  constexpr int64_t kRows = 1500;
  const auto rows = reference::make_floats(Shape::near_duplicates, kRows, 16, 7);
  const auto asked = reference::make_floats(Shape::near_duplicates, 23, 16, 8);
  std::vector<uint8_t> keep(kRows);
  for (size_t i = 0; i < keep.size(); ++i) keep[i] = i % 7 == 3;

  Index plain(factory);
  plain.train(rows.view(), one);
  std::vector<Index> placed;
  std::vector<int> copies;
  for (int count = 1; count <= several.parts(); ++count) {
    if (several.parts() % count != 0 || (factory.find("Graph") != std::string::npos && count < several.parts()))
      continue;
    placed.push_back(plain.to({several.devices(), count}, several));
    copies.push_back(count);
  }
  Resources either = one.with_device(Device::automatic());  // what an index on several devices is called with
  const auto compare = [&](const std::string& when) {
    for (const int64_t count : {1, 2, 23}) {
      for (const int64_t k : {1, 10, 2000}) {
        for (const int64_t probes : {1, 4, 0}) {
          SearchParams params = taken_by(plain, {.k = k, .probes = probes});
          for (const bool filtered : {false, true}) {
            if (filtered) params.filter = RowFilter::mask(keep.data(), plain.size());
            const MatrixView queries = asked.view().slice(0, count);
            const Found expected = found_in(plain.search(queries, params, one));
            const std::string what = factory + " " + when + ", " + std::to_string(count) +
                                     " queries, k = " + std::to_string(k) + ", probes = " + std::to_string(probes) +
                                     (filtered ? ", filtered" : "");
            EXPECT_EQ(found_in(plain.search(queries, params, several)), expected) << what;
            for (size_t i = 0; i < placed.size(); ++i) {
              EXPECT_EQ(found_in(placed[i].search(queries, params, either)), expected)
                  << what << ", copies " << copies[i];
            }
          }
        }
      }
    }
    const Found within =
        found_in(plain.range_search(asked.view(), range_taken_by(plain, {.radius = 2.0f, .probes = 3}), one));
    EXPECT_EQ(found_in(plain.range_search(asked.view(), range_taken_by(plain, {.radius = 2.0f, .probes = 3}), several)),
              within)
        << when;
    for (const Index& index : placed) {
      EXPECT_EQ(
          found_in(index.range_search(asked.view(), range_taken_by(index, {.radius = 2.0f, .probes = 3}), either)),
          within)
          << when;
    }
  };
  const auto add = [&](int64_t first, int64_t count) {
    plain.add(rows.view().slice(first, count), Ownership::copy, one);
    for (Index& index : placed) index.add(rows.view().slice(first, count), Ownership::copy, either);
  };
  add(0, 2);  // fewer rows than parts
  keep.resize(2);
  compare("with two rows");
  add(2, 1000);
  add(1002, kRows - 1002);
  keep.assign(kRows, 0);
  for (size_t i = 0; i < keep.size(); ++i) keep[i] = i % 7 == 3;
  compare("after a second add");
  const std::vector<int64_t> gone = {0, 5, 700, 701, 1400};
  plain.remove({gone.data(), 5, {}}, one);
  for (Index& index : placed) index.remove({gone.data(), 5, {}}, either);
  keep.resize(kRows - 5);
  compare("after a removal");
}

// Graphs of three pieces of 1,500 rows, of different lengths, to be merged.
inline std::vector<GraphPart> graphs_to_merge(const MatrixView& rows) {
  std::vector<GraphPart> parts;
  for (const int64_t first : {0, 300, 1000}) {
    const MatrixView some = rows.slice(first, first == 0 ? 300 : first == 300 ? 700 : 500);
    parts.push_back({knn_graph(some, {.k = 6, .method = GraphMethod::exact}, on("cpu")), some});
  }
  return parts;
}

// Two graphs, by rounds that all devices share: rows that follow each other in memory and rows that do not, both kinds of
// metric, and a merge that needs no rounds.
inline void expect_merges_of_two(const Resources& one, const Resources& several) {
  const auto rows = reference::make_floats(reference::Shape::gaussian, 1500, 24, 3);
  const auto others = reference::make_floats(reference::Shape::gaussian, 700, 24, 4);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1}) {
    const KnnGraphParams params{.k = 6, .metric = metric, .method = GraphMethod::exact};
    const auto part_of = [&](const MatrixView& some) { return GraphPart{knn_graph(some, params, on("cpu")), some}; };
    const std::vector<std::vector<GraphPart>> merges = {
        {part_of(rows.view().slice(0, 600)), part_of(rows.view().slice(600, 900))},
        {part_of(rows.view()), part_of(others.view())},
        {part_of(rows.view().slice(0, 20)), part_of(others.view().slice(0, 30))},
    };
    for (const std::vector<GraphPart>& parts : merges) {
      const KnnGraph expected = merge_graphs(parts, {.recall = 0.999}, one);
      const KnnGraph merged = merge_graphs(parts, {.recall = 0.999}, several);
      const int64_t found = expected.rows() * 6;
      EXPECT_EQ(found_in(merged.ids(), merged.distances(), found), found_in(expected.ids(), expected.distances(), found))
          << name_of(metric) << ", " << expected.rows() << " rows";
      if (one.device().kind == several.device().kind) {
        EXPECT_EQ(told_by(merged.report()), told_by(expected.report()));
      }
    }
  }
}

// The first row that is refused is named, whichever part met it.
inline void expect_refused_rows(const Resources& many) {
  auto rows = reference::make_floats(reference::Shape::gaussian, 900, 4, 1);
  rows.values[4 * 850] = NAN;
  rows.values[4 * 100] = NAN;
  for (const GraphMethod method : {GraphMethod::exact, GraphMethod::cells, GraphMethod::ggm}) {
    KnnGraphParams params{.k = 4, .method = method};
    if (method == GraphMethod::ggm) params.shards = 5;
    try {
      (void)knn_graph(rows.view(), params, many);
      ADD_FAILURE() << "nothing was refused";
    } catch (const InvalidArgument& error) {
      using ::testing::HasSubstr;
      EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("x row 100"), ::testing::Not(HasSubstr("part")))) << name_of(method);
    }
  }
}

}  // namespace kith::shared
