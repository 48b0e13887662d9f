#include "capi/arguments.hpp"
#include "capi/status.hpp"

#include <kith/kmeans.hpp>

#include <fmt/format.h>

struct kith_kmeans {
  kith::KMeans kmeans;
};

namespace kith::capi {
namespace {

KMeansParams kmeans_params_of(const kith_kmeans_params& given) {
  KMeansParams params;
  if (given.init != nullptr) params.init = parse_kmeans_init(given.init);
  if (given.clusters != 0) params.clusters = given.clusters;
  if (given.iterations != 0) params.iterations = given.iterations;
  if (given.n_init != 0) params.n_init = given.n_init;
  if (given.tol != 0) params.tol = given.tol < 0 ? 0 : given.tol;
  params.max_points_per_centre = given.max_points_per_centre;
  params.batch_size = given.batch_size;
  params.seed = given.seed;
  params.spherical = is_on(given.spherical, false, "spherical");
  params.check_finite = is_on(given.check_finite, true, "check_finite");
  return params;
}

// Centres of f64 rows lack the offset that was subtracted from all rows; it is added here.
template <typename T>
void copy_centres(const KMeansSnapshot& fitted, const MutableMatrixView& out) {
  for (int64_t i = 0; i < out.rows(); ++i) {
    const auto* from = reinterpret_cast<const float*>(fitted.centres.row(i));
    auto* to = reinterpret_cast<T*>(out.row(i));
    for (int64_t j = 0; j < out.cols(); ++j) {
      const double offset = fitted.offset.empty() ? 0 : fitted.offset[static_cast<size_t>(j)];
      to[j] = static_cast<T>(from[j] + offset);
    }
  }
}

}  // namespace

}  // namespace kith::capi

using namespace kith;
using namespace kith::capi;

extern "C" {

kith_status kith_kmeans_new(const kith_kmeans_params* params, kith_kmeans** out) {
  return guarded([&] {
    kith_kmeans*& made = handle_place(out);
    made = new kith_kmeans{KMeans(kmeans_params_of(taken(params, "kith_kmeans_params")))};
  });
}

void kith_kmeans_free(kith_kmeans* kmeans) { delete kmeans; }

kith_status kith_kmeans_fit(kith_kmeans* kmeans, const kith_matrix* rows, const float* weights, int64_t weight_count,
                            const kith_matrix* centres, const kith_resources* resources) {
  return guarded([&] {
    KMeansInput input;
    input.weights = values_of(weights, weight_count, "weights");
    if (centres != nullptr) input.centres = view_of(centres, "centres");
    required(kmeans, "kmeans").kmeans.fit(view_of(rows, "rows"), input, resources_of(resources));
  });
}

kith_status kith_kmeans_predict(const kith_kmeans* kmeans, const kith_matrix* rows, int32_t* labels, float* distances,
                                int64_t count, const kith_resources* resources) {
  return guarded([&] {
    const MatrixView view = view_of(rows, "rows");
    if (count != view.rows()) {
      throw InvalidArgument(fmt::format("count = {}, but there are {} rows; each has a label", count, view.rows()));
    }
    required(kmeans, "kmeans").kmeans.predict(view, labels, distances, resources_of(resources));
  });
}

kith_status kith_kmeans_centres(const kith_kmeans* kmeans, const kith_mutable_matrix* out) {
  return guarded([&] {
    const KMeansSnapshot fitted = required(kmeans, "kmeans").kmeans.snapshot();
    const MutableMatrixView to = view_of(out, "out");
    const bool wide = to.dtype() == DType::f64;
    if (to.rows() != fitted.centres.rows() || to.cols() != fitted.centres.cols() || !to.space().host_readable() ||
        (!wide && to.dtype() != DType::f32)) {
      throw InvalidArgument(fmt::format("out: {} x {} of {}; the centres are {} x {} of f32 or f64 in host memory",
                                        to.rows(), to.cols(), name_of(to.dtype()), fitted.centres.rows(),
                                        fitted.centres.cols()));
    }
    if (wide) {
      copy_centres<double>(fitted, to);
    } else {
      copy_centres<float>(fitted, to);
    }
  });
}

kith_status kith_kmeans_get_info(const kith_kmeans* kmeans, kith_kmeans_info* out) {
  return guarded([&] {
    const KMeans& about = required(kmeans, "kmeans").kmeans;
    kith_kmeans_info told = {};
    told.clusters = about.params().clusters;
    if (about.fitted()) {
      const KMeansSnapshot fitted = about.snapshot();
      told.dimension = fitted.centres.cols();
      told.iterations = fitted.iterations;
      told.objective = fitted.objective;
      told.fitted = 1;
    }
    give(out, told, "out", "kith_kmeans_info");
  });
}

}  // extern "C"
