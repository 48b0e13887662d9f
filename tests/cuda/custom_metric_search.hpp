// Metrics of a test's own, for search and graphs on the CPU and on the GPU: compiled by nvcc, called from the tests.
#pragma once

#include <kith/custom_metric.hpp>

namespace kith {

enum class TestMetric { canberra, weighted, one_way };

Neighbors search_by(TestMetric metric, const MatrixView& queries, const MatrixView& base, const CustomKnnParams& params,
                    const Resources& resources);
Neighbors search_by_cuda(TestMetric metric, const MatrixView& queries, const MatrixView& base,
                         const CustomKnnParams& params, const Resources& resources);

CustomGraph graph_by(TestMetric metric, const MatrixView& x, const CustomGraphParams& params, const Resources& resources);
CustomGraph graph_by_cuda(TestMetric metric, const MatrixView& x, const CustomGraphParams& params,
                          const Resources& resources);

}  // namespace kith
