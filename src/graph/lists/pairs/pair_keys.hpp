// The canonical keys of one row and others of the same collection, or those of a user's metric, on the CPU.
#pragma once

#include <kith/view.hpp>

#include "graph/lists/pairs/pair_rows.hpp"
#include "kernels/distance/distance_cpu.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class PairKeys {
 public:
  PairKeys(const MatrixView& x, KeyKind kind)
      : x_(x), kind_(kind), values_(static_cast<size_t>(x.dtype() == DType::f32 ? 0 : x.cols())) {}

  explicit PairKeys(const PairRows& rows)
      : x_(rows.view()),
        kind_(rows.kind()),
        custom_(rows.custom()),
        values_(static_cast<size_t>(custom_ != nullptr || x_.dtype() != DType::f32 ? x_.cols() : 0)),
        others_(static_cast<size_t>(custom_ != nullptr ? 2 * custom::kPanelRows * x_.cols() : 0)) {}

  // keys[i] = the key of `row` and others[i].
  void of(uint32_t row, const uint32_t* others, int64_t count, float* keys);
  // Brings a row's values near, ahead of their use.
  void prefetch(uint32_t row) const;

 private:
  void by_custom(uint32_t row, const uint32_t* others, int64_t count, float* keys);

  const MatrixView x_;
  KeyKind kind_;
  const custom::PanelMetric* custom_ = nullptr;
  std::vector<float> values_;  // of the row, where they are not stored so
  std::vector<float> others_;  // for a user's metric
};

}  // namespace kith
