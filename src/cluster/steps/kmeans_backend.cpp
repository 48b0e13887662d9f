#include "cluster/steps/kmeans_backend.hpp"

#include <kith/error.hpp>

#include "core/dispatch.hpp"

#include <algorithm>

namespace kith {

void KMeansBackend::scan_all(RowSource& source, int64_t piece_rows, ProgressMeter& meter) {
  for (int64_t first = 0; first < source.rows(); first += piece_rows) {
    scan(source.fetch(first, std::min(piece_rows, source.rows() - first)), first, meter);
    meter.poll();
  }
}

void KMeansBackend::finish_on_device(int) { throw InvalidState("this backend has no device memory to write to"); }

std::unique_ptr<CandidateDraws> KMeansBackend::make_draws(const KMeansRowArrays& rows, const Resources& resources) {
  return make_draws_on_host({rows.count, rows.labels, rows.keys, rows.weights, [this] { get_rows(); }}, resources);
}

void count_labels(const KMeansRowArrays& rows, int64_t clusters, double* counts) {
  std::fill_n(counts, clusters, 0.0);
  for (int64_t i = 0; i < rows.count; ++i) {
    counts[rows.labels[i]] += rows.weights == nullptr ? 1.0 : static_cast<double>(rows.weights[i]);
  }
}

std::unique_ptr<KMeansBackend> make_kmeans_backend(const KMeansShape& shape, const KMeansWish& wish,
                                                   const KMeansPlan& plan, const DataSample& sample,
                                                   const Resources& resources) {
  return dispatch(
      plan.device(), [&] { return make_kmeans_cpu(shape, wish, plan, sample, resources); },
      [&](int) { return make_kmeans_cuda(shape, wish, plan, sample, resources); });
}

}  // namespace kith
