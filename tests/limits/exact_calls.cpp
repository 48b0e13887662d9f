#include "limits/call_data.hpp"
#include "limits/public_calls.hpp"

#include <kith/custom_metric.hpp>
#include <kith/knn.hpp>
#include <kith/pairwise_distances.hpp>
#include <kith/range_search.hpp>
#include <kith/vector_file.hpp>

#include <cmath>

namespace kith::testing {
namespace {

struct Manhattan {
  float init() const { return 0; }
  float step(float sum, float x, float y) const { return sum + std::abs(x - y); }
  float finish(float sum) const { return sum; }
};

std::string base_file() {
  static const std::string path = [] {
    const std::string name = scratch_file("base.fbin");
    write_vectors(name, base_rows().view());
    return name;
  }();
  return path;
}

}  // namespace

void add_exact_calls(std::vector<PublicCall>& calls) {
  static const std::vector<uint8_t> mask = [] {
    std::vector<uint8_t> bytes(static_cast<size_t>(base_rows().rows));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = i % 3 == 0;
    return bytes;
  }();
  static const std::vector<int64_t> few = {3, 5, 700, 1400};
  const auto knn_with = [](Metric metric, const RowFilter& filter) {
    return [metric, filter](const Resources& resources) {
      KnnParams params;
      params.k = 7;
      params.metric = metric;
      params.filter = filter;
      (void)knn(query_rows().view(), base_rows().view(), params, resources);
    };
  };
  calls.push_back({"knn", knn_with(Metric::l2, {})});
  calls.push_back({"knn_cosine", knn_with(Metric::cosine, {})});
  calls.push_back({"knn_l1", knn_with(Metric::l1, {})});
  calls.push_back({"knn_mask", knn_with(Metric::l2, RowFilter::mask(mask.data(), base_rows().rows))});
  calls.push_back({"knn_rows", knn_with(Metric::l2, RowFilter::rows(few.data(), 4))});
  calls.push_back({"knn_into", [](const Resources& resources) {
                     std::vector<int64_t> ids(60 * 5);
                     std::vector<float> distances(60 * 5);
                     const NeighborsView out{ids.data(), distances.data(), 60, 5, {}};
                     knn(query_rows().view(), base_rows().view(), out, {.k = 5}, resources);
                   }});
  calls.push_back({"knn_files", [](const Resources& resources) {
                     const VectorFile file(base_file());
                     knn(
                         file, file, [](int64_t, const NeighborsView&) {}, {.k = 5}, resources);
                   }});
  calls.push_back({"knn_by",
                   [](const Resources& resources) {
                     (void)knn_by(Manhattan(), query_rows().view(), base_rows().view(), {.k = 5}, resources);
                   },
                   false});  // a functor of the CPU's
  calls.push_back({"pairwise", [](const Resources& resources) {
                     (void)pairwise_distances(query_rows().view(), base_rows().view(), {}, resources);
                   }});
  const auto range_of_few = [] {
    RangeParams params;
    params.radius = 1e-3f;
    return params;
  };
  calls.push_back({"range", [=](const Resources& resources) {
                     (void)range_search(query_rows().view(), base_rows().view(), range_of_few(), resources);
                   }});
  calls.push_back({"knn_f64", [](const Resources& resources) {
                     (void)knn(far_query_rows(), far_base_rows(), {.k = 5}, resources);
                   }});
  calls.push_back({"pairwise_f64", [](const Resources& resources) {
                     (void)pairwise_distances(far_query_rows(), far_base_rows(), {}, resources);
                   }});
  calls.push_back({"range_f64", [=](const Resources& resources) {
                     (void)range_search(far_query_rows(), far_base_rows(), range_of_few(), resources);
                   }});
  calls.push_back({"range_files", [=](const Resources& resources) {
                     const VectorFile file(base_file());
                     range_search(
                         file, file, [](int64_t, const RangeView&) {}, range_of_few(), resources);
                   }});
}

}  // namespace kith::testing
