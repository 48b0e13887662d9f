// The true tenth distance of 1,000 rows, evenly spread, by which the recall@10 of working lists on a GPU is measured.
#pragma once

#include <kith/kith.hpp>

#include "cuda_timing.hpp"

#include "core/ordered_key.hpp"
#include "graph/lists/working_lists_cuda.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kith {

class RecallTruth {
 public:
  RecallTruth(const MatrixView& x, Metric metric, const Resources& resources)
      : count_(std::min<int64_t>(1000, x.rows())), apart_(x.rows() / count_) {
    const MatrixView some(x.data(), x.dtype(), {count_, x.cols(), apart_ * x.row_stride()}, x.space());
    const Neighbors found = knn(some, x, {.k = kTen + 1, .metric = metric}, resources);
    for (int64_t i = 0; i < count_; ++i) {
      int64_t others = 0;
      for (int64_t j = 0; j <= kTen && others < kTen; ++j) {
        if (found.ids(i)[j] == i * apart_) continue;
        const float distance = found.distances(i)[j];
        if (++others == kTen) tenth_.push_back(larger_is_nearer(metric) ? -distance : distance);
      }
    }
  }

  // `slack`: of keys that were computed with less care, by so much of them.
  double recall(const DeviceListsRef& lists, float slack = 0) const {
    std::vector<uint64_t> first(static_cast<size_t>(count_ * kTen));
    const auto pitch = static_cast<size_t>(apart_ * lists.length * 8);
    check(cudaMemcpy2D(first.data(), kTen * 8, lists.entries, pitch, kTen * 8, static_cast<size_t>(count_),
                       cudaMemcpyDeviceToHost));
    int64_t found = 0;
    for (size_t i = 0; i < first.size(); ++i) {
      found += first[i] != kPadding && key_of_ordered(ordered_of(first[i])) <= tenth_[i / kTen] * (1 + slack) ? 1 : 0;
    }
    return static_cast<double>(found) / static_cast<double>(count_ * kTen);
  }

 private:
  static constexpr int64_t kTen = 10;
  int64_t count_;
  int64_t apart_;
  std::vector<float> tenth_;
};

}  // namespace kith
