// The canonical keys of one row and others of the same collection, on the CPU.
#pragma once

#include <kith/view.hpp>

#include "kernels/distance/distance_cpu.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class PairKeys {
 public:
  PairKeys(const MatrixView& x, KeyKind kind)
      : x_(x), kind_(kind), values_(static_cast<size_t>(x.dtype() == DType::f32 ? 0 : x.cols())) {}

  // keys[i] = the key of `row` and others[i].
  void of(uint32_t row, const uint32_t* others, int64_t count, float* keys);

 private:
  const MatrixView x_;
  KeyKind kind_;
  std::vector<float> values_;  // of the row, where they are not stored so
};

}  // namespace kith
