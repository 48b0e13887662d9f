// Searches that go through products whatever the plan would choose, for tests.
#pragma once

#include "cuda/parity.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kith {

struct ProductsRun {
  int64_t device_bytes = kNoLimit;
  int64_t base_chunk = 0;  // rows handed over at a time; 0: as planned
  Resources resources = on_cuda();
};

inline Neighbors search_as(const CudaChoice& choice, const Vectors& queries, const Vectors& base,
                           const KnnParams& params, const ProductsRun& run = {}) {
  const MatrixView q = queries.view();
  const MatrixView b = base.view();
  const SearchTask task =
      search_of(check_knn(RowsInfo(q), RowsInfo(b), params), {.k = params.k, .check_finite = params.check_finite});
  const DeviceInfo device = cuda_devices().front();
  const PlanBudget budget{kNoLimit, std::min(run.device_bytes, device.memory_free / 2), 1};
  KnnCudaPlan plan = plan_knn_cuda(task, device, budget, choice);
  if (run.base_chunk > 0) plan.base_chunk = run.base_chunk;
  PlannedKnn planned{plan, std::make_unique<Reservation>(plan.host_bytes, plan.device_bytes, run.resources)};
  EXPECT_EQ(plan.engine(), CudaEngine::product);
  Neighbors result(q.rows(), params.k, run.resources);
  ViewSource query_rows(q);
  ViewSource base_rows(b);
  const RowFilter all;
  const SearchInput input{query_rows, base_rows, all};
  search_knn(PlannedSearch(task, std::move(planned), input), result.view());
  return result;
}

// Both implementations, whole groups and a second product.
inline void expect_products_parity(const Vectors& queries, const Vectors& base, const KnnParams& params,
                                   const ProductsRun& run = {}) {
  SCOPED_TRACE(::testing::Message() << queries.shape.rows << " queries (" << name_of(queries.dtype) << "), "
                                    << base.shape.rows << " rows (" << name_of(base.dtype) << "), " << base.shape.cols
                                    << " columns, k " << params.k << ", " << name_of(params.metric));
  const Neighbors expected = knn(queries.view(), base.view(), params, on_cpu());
  const bool hopper = cuda_devices().front().compute_capability == 90;
  for (const ProductEngine engine : {ProductEngine::mma, ProductEngine::wgmma}) {
    if (engine == ProductEngine::wgmma && !hopper) continue;
    for (const bool second : {false, true}) {
      if (second && params.k > 32) continue;  // it is there anyway
      SCOPED_TRACE(::testing::Message() << (engine == ProductEngine::mma ? "mma" : "wgmma")
                                        << (second ? ", second product" : ""));
      expect_same_bytes(expected, search_as({CudaEngine::product, engine, second}, queries, base, params, run));
    }
  }
}

// What a search says of queries that its products were not sure of.
inline std::string said(const Vectors& queries, const Vectors& base, const KnnParams& params) {
  ResourceOptions options = cuda_options();
  std::string text;
  options.log = [&](LogLevel, std::string_view line) { text += line; };
  ProductsRun run;
  run.resources = Resources(options);
  const Neighbors expected = knn(queries.view(), base.view(), params, on_cpu());
  expect_same_bytes(expected, search_as({CudaEngine::product}, queries, base, params, run));
  return text;
}

}  // namespace kith
