// KMeans: every start, mini-batches, weights, spherical; predictions, transforms, snapshots, files.
#include "case.hpp"

namespace hashes {
namespace {

using namespace kith;

void hash_fit(Hash& hash, const KMeans& kmeans) {
  const KMeansSnapshot fit = kmeans.snapshot();
  hash.add(fit.centres);
  hash.bytes(fit.labels.data, fit.labels.size * 4);
  for (int64_t i = 0; i < fit.counts.size; ++i) hash.real(fit.counts[i]);
  hash.real(fit.objective);
  hash.add(fit.history);
  hash.number(fit.iterations);
}

void hash_prediction(Hash& hash, const KMeans& kmeans, const MatrixView& rows, const Resources& resources) {
  std::vector<int32_t> labels(static_cast<size_t>(rows.rows()));
  std::vector<float> distances(static_cast<size_t>(rows.rows()));
  kmeans.predict(rows, labels.data(), distances.data(), resources);
  hash.bytes(labels.data(), rows.rows() * 4);
  hash.add(distances);
  std::fill(labels.begin(), labels.end(), -1);
  kmeans.predict(rows, labels.data(), nullptr, resources);
  hash.bytes(labels.data(), rows.rows() * 4);
}

void hash_distances(Hash& hash, const KMeans& kmeans, const MatrixView& rows, const Resources& resources) {
  const int64_t clusters = kmeans.params().clusters;
  std::vector<float> out(static_cast<size_t>(rows.rows() * clusters));
  kmeans.transform(rows, MutableMatrixView(out.data(), rows.rows(), clusters), resources);
  hash.add(out);
}

// Rows with what may come with them.
struct Collection {
  Rows rows;
  Rows centres;
  std::vector<float> weights;
  KMeansInput input;
};

void draw_collection(Case& c, KMeansParams& params, int64_t rows, Collection& to) {
  Draws& draws = c.draws;
  const Source source = draw_source(draws, Metric::l2);
  const DType dtype = draw_dtype(draws, Metric::l2);
  const int64_t cols = draw_cols(draws);
  const int64_t gap = draws.chance(15) ? 3 : 0;
  to.rows = Rows(source, dtype, 0, rows, cols, gap);
  if (draws.chance(40)) to.rows.move_to_device();
  if (params.init == KMeansInit::given) {
    to.centres = Rows({.pattern = Pattern::bell, .key = source.key}, draws.of({DType::f32, DType::f16}), rows,
                      params.clusters, cols);
    to.input.centres = to.centres.host();
  }
  if (draws.chance(30)) {
    for (int64_t i = 0; i < rows; ++i) to.weights.push_back(static_cast<float>(draws.between(0, 16)) * 0.25f);
    to.weights[0] = 1;
    to.input.weights = {to.weights.data(), rows, {}};
  }
  c.note(to.rows);
}

KMeansParams draw_params(Case& c, int64_t rows) {
  Draws& draws = c.draws;
  KMeansParams params;
  params.clusters = std::min(rows, draws.of<int64_t>({1, 2, 3, 7, 8, 16, 17, 33, 64, 100}));
  params.iterations = draws.between(1, 8);
  params.init =
      draws.of({KMeansInit::kmeans_plus_plus, KMeansInit::kmeans_plus_plus, KMeansInit::random, KMeansInit::given});
  params.n_init = params.init != KMeansInit::given && draws.chance(15) ? 3 : 1;
  params.tol = draws.of({0.0, 1e-4, 1e-2});
  params.seed = draws.bits();
  params.spherical = draws.chance(20);
  params.history = draws.chance(70);
  params.compute_labels = draws.chance(80);
  if (draws.chance(15)) params.max_points_per_centre = draws.between(2, 20);
  if (draws.chance(30)) params.init_points_per_centre = draws.of<int64_t>({0, 3, 10});
  c.note(name_of(params.init));
  c.note("clusters", params.clusters);
  c.note("spherical", params.spherical);
  return params;
}

void fit_case(Case& c) {
  const int64_t rows = draw_rows(c.draws);
  KMeansParams params = draw_params(c, rows);
  if (c.draws.chance(25)) params.batch_size = c.draws.of<int64_t>({1, 16, 50, 256});
  Collection data;
  draw_collection(c, params, rows, data);
  c.note("batch", params.batch_size);
  const bool limited = c.draws.chance(15);
  KMeans kmeans(params);
  c.call("fit", [&](Hash& hash) {
    if (limited) {
      c.under_least_memory([&](const Resources& resources) { kmeans.fit(data.rows.view(), data.input, resources); });
    } else {
      kmeans.fit(data.rows.view(), data.input, c.resources);
    }
    hash_fit(hash, kmeans);
  });
  if (!kmeans.fitted()) return;
  c.call("predict", [&](Hash& hash) { hash_prediction(hash, kmeans, data.rows.view(), c.resources); });
  if (c.draws.chance(50)) {
    c.call("transform", [&](Hash& hash) { hash_distances(hash, kmeans, data.rows.view(), c.resources); });
  }
  if (c.draws.chance(30)) {
    c.call("restore", [&](Hash& hash) {
      KMeans other(params);
      other.restore(kmeans.snapshot(), c.resources);
      hash_fit(hash, other);
      other.partial_fit(data.rows.view(), {}, c.resources);
      hash_fit(hash, other);
    });
  }
  if (c.draws.chance(20)) {
    c.call("set_centres", [&](Hash& hash) {
      KMeans other(params);
      other.set_centres(kmeans.snapshot().centres, c.resources);
      hash_prediction(hash, other, data.rows.view(), c.resources);
    });
  }
}

void partial_fit_case(Case& c) {
  const int64_t rows = c.draws.between(120, 500);
  KMeansParams params = draw_params(c, rows);
  params.init = c.draws.of({KMeansInit::kmeans_plus_plus, KMeansInit::random});
  params.n_init = 1;
  Collection data;
  draw_collection(c, params, rows, data);
  data.input.weights = {};
  KMeans kmeans(params);
  for (const char* step : {"first", "second"}) {
    c.call(step, [&](Hash& hash) {
      const bool first = step[0] == 'f';
      kmeans.partial_fit(data.rows.view().slice(first ? 0 : 60, first ? 110 : rows - 60), {}, c.resources);
      hash_fit(hash, kmeans);
    });
  }
}

void file_case(Case& c) {
  const int64_t rows = c.draws.between(100, 900);
  KMeansParams params = draw_params(c, rows);
  if (c.draws.chance(25)) params.batch_size = c.draws.of<int64_t>({16, 50, 256});
  Collection data;
  draw_collection(c, params, rows, data);
  const std::string path = c.path("kmeans.npy");
  const DType dtype = data.rows.dtype() == DType::bf16 ? DType::f32 : data.rows.dtype();
  write_vectors(path, data.rows.host(), dtype);
  KMeans kmeans(params);
  c.call("fit", [&](Hash& hash) {
    const VectorFile file(path);
    c.under_least_memory([&](const Resources& resources) { kmeans.fit(file, data.input, resources); });
    hash_fit(hash, kmeans);
  });
  if (!kmeans.fitted()) return;
  c.call("predict", [&](Hash& hash) {
    const VectorFile file(path);
    std::vector<int64_t> labels(static_cast<size_t>(rows));
    std::vector<float> distances(static_cast<size_t>(rows));
    c.under_least_memory([&](const Resources& resources) {
      kmeans.predict(
          file,
          [&](int64_t first, int64_t count, const int32_t* some, const float* far) {
            std::copy_n(some, count, labels.begin() + first);
            std::copy_n(far, count, distances.begin() + first);
          },
          resources);
    });
    hash.add(labels);
    hash.add(distances);
  });
}

}  // namespace

std::vector<EntryPoint> kmeans_cases() {
  return {{"kmeans", 200, fit_case}, {"kmeans_partial", 40, partial_fit_case}, {"kmeans_file", 40, file_case}};
}

}  // namespace hashes
