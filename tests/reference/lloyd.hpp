// Lloyd's algorithm, written down from its definition: every distance, every sum in the order that
// kernels/assign/centre_sums.hpp promises, the farthest row for an empty centre.
#pragma once

#include "kernels/assign/centre_sums.hpp"
#include "reference/brute_force.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith::reference {

struct Clustering {
  Matrix<float> centres;
  std::vector<int32_t> labels;
  std::vector<float> keys;
  std::vector<double> history;
};

template <typename T>
void assign(const Matrix<T>& rows, bool spherical, Clustering& c) {
  const Matrix<float>& floats = widened(rows);
  for (int64_t i = 0; i < rows.rows; ++i) {
    uint64_t best = kPadding;
    for (int64_t k = 0; k < c.centres.rows; ++k) {
      const Metric metric = spherical ? Metric::inner_product : Metric::sqeuclidean;
      const float key = canonical(metric, floats.row(i), c.centres.row(k), rows.cols);
      best = std::min(best, pack_neighbor(ordered_key(key), static_cast<uint32_t>(k)));
    }
    c.labels[static_cast<size_t>(i)] = static_cast<int32_t>(row_of(best));
    c.keys[static_cast<size_t>(i)] = key_of_ordered(ordered_of(best));
  }
}

inline void normalise(Matrix<float>& centres) {
  for (int64_t k = 0; k < centres.rows; ++k) {
    std::vector<double> values(centres.row(k), centres.row(k) + centres.cols);
    const double inverse = canonical_inverse_norm(canonical_squared_norm(values.data(), centres.cols));
    for (int64_t j = 0; inverse > 0 && j < centres.cols; ++j) {
      centres.row(k)[j] = static_cast<float>(values[static_cast<size_t>(j)] * inverse);
    }
  }
}

// `iterations` rounds from these centres, and a last assignment.
template <typename T>
Clustering lloyd(const Matrix<T>& rows, Matrix<float> centres, const std::vector<float>& weights, bool spherical,
                 int iterations) {
  const int64_t k = centres.rows;
  const int64_t d = centres.cols;
  if (spherical) normalise(centres);
  Clustering c{std::move(centres),
               std::vector<int32_t>(static_cast<size_t>(rows.rows)),
               std::vector<float>(static_cast<size_t>(rows.rows)),
               {}};
  const auto weight_of = [&](int64_t i) {
    return weights.empty() ? 1.0 : static_cast<double>(weights[static_cast<size_t>(i)]);
  };
  for (int round = 0; round < iterations; ++round) {
    assign(rows, spherical, c);
    Matrix<double> sums(k, d + 1);  // the last column is the weight
    double objective = 0;
    for (int64_t first = 0; first < rows.rows; first += sum_block(k)) {
      Matrix<double> partial(k, d + 1);
      for (int64_t i = first; i < std::min(first + sum_block(k), rows.rows); ++i) {
        double* sum = partial.row(c.labels[static_cast<size_t>(i)]);
        for (int64_t j = 0; j < d; ++j) sum[j] += weight_of(i) * static_cast<double>(rows.row(i)[j]);
        sum[d] += weight_of(i);
      }
      for (size_t v = 0; v < sums.values.size(); ++v) sums.values[v] += partial.values[v];
    }
    for (int64_t first = 0; first < rows.rows; first += kSumBlock) {
      double block_objective = 0;
      for (int64_t i = first; i < std::min(first + kSumBlock, rows.rows); ++i) {
        block_objective += weight_of(i) * static_cast<double>(c.keys[static_cast<size_t>(i)]);
      }
      objective += block_objective;
    }
    c.history.push_back(objective);

    std::vector<bool> taken(static_cast<size_t>(rows.rows), false);
    for (int64_t empty = 0; empty < k; ++empty) {
      if (sums.row(empty)[d] > 0) continue;
      int64_t farthest = -1;
      for (int64_t i = 0; i < rows.rows; ++i) {
        const auto at = static_cast<size_t>(i);
        int64_t others = 0;
        bool again = false;  // as far from the same centre as one that was taken
        for (int64_t o = 0; o < rows.rows; ++o) {
          const auto other = static_cast<size_t>(o);
          others += o != i && !taken[other] && weight_of(o) > 0 && c.labels[other] == c.labels[at];
          again |= taken[other] && c.labels[other] == c.labels[at] && c.keys[other] == c.keys[at];
        }
        if (again || others == 0 || !(weight_of(i) > 0) || (spherical ? c.keys[at] == 0 : !(c.keys[at] > 0))) {
          continue;
        }
        if (farthest < 0 || c.keys[at] > c.keys[static_cast<size_t>(farthest)]) farthest = i;
      }
      if (farthest < 0) continue;
      taken[static_cast<size_t>(farthest)] = true;
      double* old = sums.row(c.labels[static_cast<size_t>(farthest)]);
      for (int64_t j = 0; j <= d; ++j) {
        const double value =
            j == d ? weight_of(farthest) : weight_of(farthest) * static_cast<double>(rows.row(farthest)[j]);
        old[j] -= value;
        sums.row(empty)[j] = value;
      }
    }
    for (int64_t i = 0; i < k; ++i) {
      if (!(sums.row(i)[d] > 0)) continue;
      std::vector<double> mean(static_cast<size_t>(d));
      for (int64_t j = 0; j < d; ++j) mean[static_cast<size_t>(j)] = sums.row(i)[j] / sums.row(i)[d];
      double inverse = spherical ? canonical_inverse_norm(canonical_squared_norm(mean.data(), d)) : 1.0;
      if (!(inverse > 0)) continue;
      for (int64_t j = 0; j < d; ++j) c.centres.row(i)[j] = static_cast<float>(mean[static_cast<size_t>(j)] * inverse);
    }
  }
  assign(rows, spherical, c);
  return c;
}

}  // namespace kith::reference
