#include "cuda/custom_metric_search.hpp"

#include <kith/custom_metric.cuh>

namespace kith {
namespace test_metrics {  // with a name: in none, nvcc takes `symmetric`, which concepts alone look at, for unused

// Nothing that could be fused, so that it is the same on both.
struct Canberra {
  static constexpr bool symmetric = true;
  __host__ __device__ float init() const { return 0; }
  __host__ __device__ float step(float sum, float q, float x) const {
    const float size = fabsf(q) + fabsf(x);
    return size == 0 ? sum : sum + fabsf(q - x) / size;
  }
  __host__ __device__ float finish(float sum) const { return sum; }
};

// With a parameter, and negative for some; exact on whole numbers.
struct Weighted {
  static constexpr bool symmetric = true;
  float weight;
  __host__ __device__ float init() const { return -weight; }
  __host__ __device__ float step(float sum, float q, float x) const { return sum + weight * fabsf(q - x); }
  __host__ __device__ float finish(float sum) const { return 0.5f * sum; }
};

// It says that it is symmetric.
struct OneWay {
  static constexpr bool symmetric = true;
  __host__ __device__ float init() const { return 0; }
  __host__ __device__ float step(float sum, float q, float x) const { return sum + fmaxf(q - x, 0.0f); }
  __host__ __device__ float finish(float sum) const { return sum; }
};

}  // namespace test_metrics

using namespace test_metrics;

Neighbors search_by(TestMetric metric, const MatrixView& queries, const MatrixView& base, const CustomKnnParams& params,
                    const Resources& resources) {
  if (metric == TestMetric::canberra) return knn_by(Canberra{}, queries, base, params, resources);
  return knn_by(Weighted{4}, queries, base, params, resources);
}

Neighbors search_by_cuda(TestMetric metric, const MatrixView& queries, const MatrixView& base,
                         const CustomKnnParams& params, const Resources& resources) {
  if (metric == TestMetric::canberra) return knn_by_cuda(Canberra{}, queries, base, params, resources);
  return knn_by_cuda(Weighted{4}, queries, base, params, resources);
}

CustomGraph graph_by(TestMetric metric, const MatrixView& x, const CustomGraphParams& params, const Resources& resources) {
  if (metric == TestMetric::canberra) return knn_graph_by(Canberra{}, x, params, resources);
  if (metric == TestMetric::one_way) return knn_graph_by(OneWay{}, x, params, resources);
  return knn_graph_by(Weighted{4}, x, params, resources);
}

CustomGraph graph_by_cuda(TestMetric metric, const MatrixView& x, const CustomGraphParams& params,
                          const Resources& resources) {
  if (metric == TestMetric::canberra) return knn_graph_by_cuda(Canberra{}, x, params, resources);
  if (metric == TestMetric::one_way) return knn_graph_by_cuda(OneWay{}, x, params, resources);
  return knn_graph_by_cuda(Weighted{4}, x, params, resources);
}

}  // namespace kith
