// What tests of transforms share: resources, rows through a chain, errors of a way there and back.
#pragma once

#include <kith/resources.hpp>

#include "reference/data.hpp"
#include "transform/transform_chain.hpp"
#include "transform/transform_training.hpp"

#include <cstdint>
#include <vector>

namespace kith {

inline Resources cpu_only(int threads, int64_t limit = kNoLimit) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = threads;
  options.host_memory_limit = limit;
  return Resources(options);
}

template <typename T>
TransformChain trained(const std::vector<TransformSpec>& specs, const reference::Matrix<T>& rows, uint64_t seed = 1,
                       const Resources& resources = cpu_only(2)) {
  ViewSource source(rows.view());
  return train_transforms(specs, source, seed, resources);
}

template <typename Steps, typename T>
reference::Matrix<float> applied(const Steps& steps, const reference::Matrix<T>& rows,
                                 const Resources& resources = cpu_only(2)) {
  reference::Matrix<float> out(rows.rows, steps.out());
  steps.apply(rows.view(), MutableMatrixView(out.values.data(), out.rows, out.cols), resources);
  return out;
}

template <typename Steps>
reference::Matrix<float> reversed(const Steps& steps, const reference::Matrix<float>& rows,
                                  const Resources& resources = cpu_only(2)) {
  reference::Matrix<float> out(rows.rows, steps.in());
  steps.reverse(rows.view(), MutableMatrixView(out.values.data(), out.rows, out.cols), resources);
  return out;
}

inline double squared_distance(const reference::Matrix<float>& a, const reference::Matrix<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double difference = static_cast<double>(a.values[i]) - static_cast<double>(b.values[i]);
    sum += difference * difference;
  }
  return sum;
}

}  // namespace kith
