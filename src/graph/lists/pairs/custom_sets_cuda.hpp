// Keys by a metric of the user's on a GPU: small sets of rows are written down, the user's kernel
// (kith/custom_metric.cuh) writes their distances, which are the keys.
//
// Memory: kSetBytes (start_rules.hpp) at most, or what one set takes.
#pragma once

#include <kith/custom_metric_cuda.hpp>
#include <kith/resources.hpp>

#include "cuda/device_array.hpp"
#include "graph/lists/pairs/pair_key_rows.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// For the kernels that write sets and read distances.
struct CustomSetsRef {
  uint32_t* numbers = nullptr;
  custom::SetCounts* counts = nullptr;
  float* distances = nullptr;
  int64_t most_queries = 0;
  int64_t most_rows = 0;
};

class CustomSetsCuda {
 public:
  // With room for as many of `sets` as fit, each of so many queries and rows.
  CustomSetsCuda(const custom::GraphMetric& metric, const PairKeyRows& rows, int64_t sets, int64_t most_queries,
                 int64_t most_rows, std::shared_ptr<const DeviceContext> context, const Resources& resources);

  int64_t room() const { return room_; }  // sets
  const CustomSetsRef& ref() const { return ref_; }
  // The distances of the first `sets` of them. Enqueues on the context's stream.
  void compute(int64_t sets) const;

 private:
  const custom::GraphMetric metric_;
  const PairKeyRows rows_;
  std::shared_ptr<const DeviceContext> context_;
  int64_t room_;
  DeviceArray<custom::SetCounts> counts_;
  DeviceArray<uint32_t> numbers_;
  DeviceArray<float> distances_;
  CustomSetsRef ref_;
};

// InvalidArgument where the metric is not symmetric on some pairs of rows, drawn by the seed.
void check_symmetric_cuda(const custom::GraphMetric& metric, const PairKeyRows& rows, uint64_t seed,
                          const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

}  // namespace kith
