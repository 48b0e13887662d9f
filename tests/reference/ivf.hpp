// An inverted file, slow and obvious: every vector is decoded, every distance computed, and lists are ranked by
// sorting.
#pragma once

#include "ivf/model/ivf_model.hpp"
#include "reference/brute_force.hpp"

#include <cstdint>
#include <vector>

namespace kith::reference {

class Ivf {
 public:
  // The rows that were added, in their order.
  Ivf(const IvfModel& model, const Matrix<float>& rows);

  int64_t list(int64_t row) const { return lists_[static_cast<size_t>(row)]; }
  const float* vector(int64_t row) const { return vectors_.row(row); }

  // Packed neighbours, k for each query, padded. `kept`: one for each row, or empty.
  std::vector<uint64_t> search(const Matrix<float>& queries, int64_t k, int64_t probes,
                               const std::vector<bool>& kept = {}) const;
  // Those with keys up to `most` in the first `probes` lists, for each query.
  std::vector<std::vector<uint64_t>> range(const Matrix<float>& queries, float most, int64_t probes,
                                           const std::vector<bool>& kept = {}) const;

 private:
  std::vector<int64_t> ranked_lists(const float* query) const;
  uint64_t neighbor(const float* query, int64_t row) const;

  const IvfModel& model_;
  std::vector<int64_t> lists_;
  Matrix<float> vectors_;
};

}  // namespace kith::reference
