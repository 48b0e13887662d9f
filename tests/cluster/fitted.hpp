// A fitted model as plain vectors, to be compared byte by byte.
#pragma once

#include <kith/kmeans.hpp>

#include <cstdint>
#include <vector>

namespace kith {

struct Fitted {
  std::vector<float> centres;
  std::vector<int32_t> labels;
  std::vector<double> counts;
  std::vector<double> history;
  double objective = 0;
  int64_t iterations = 0;
  bool operator==(const Fitted&) const = default;
};

inline Fitted taken(const KMeansSnapshot& snapshot) {
  const MatrixView& c = snapshot.centres;
  const auto* values = static_cast<const float*>(c.data());
  return {{values, values + c.rows() * c.cols()},
          {snapshot.labels.data, snapshot.labels.data + snapshot.labels.size},
          {snapshot.counts.data, snapshot.counts.data + snapshot.counts.size},
          snapshot.history,
          snapshot.objective,
          snapshot.iterations};
}

inline Fitted taken(const KMeans& model) { return taken(model.snapshot()); }

inline Resources cpu_resources(int threads, int64_t limit = kNoLimit) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = threads;
  options.host_memory_limit = limit;
  return Resources(options);
}

template <typename Rows>
Fitted fit(const Rows& rows, const KMeansParams& params, const KMeansInput& input = {},
           const Resources& resources = cpu_resources(2)) {
  KMeans model(params);
  model.fit(rows, input, resources);
  return taken(model);
}

}  // namespace kith
