// Where a matrix of distances goes: the array that the caller gave, on the host or a GPU, or a fresh one in Kith's host
// memory, counted against its limit.
#pragma once

#include "array.hpp"

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <optional>
#include <variant>

namespace kith::python {

using GivenDistances = std::variant<DeviceArray, DistanceArray>;

class MatrixOutput {
 public:
  // Throws InvalidArgument where a given array is not rows x cols.
  MatrixOutput(int64_t rows, int64_t cols, const std::optional<GivenDistances>& given, const Resources& resources);

  const MutableMatrixView& view() const { return view_; }

  // A fresh numpy array; none where the caller gave one. Call once, with the GIL.
  std::optional<nb::object> take();

 private:
  MatrixBuffer fresh_;
  bool given_;
  MutableMatrixView view_;
};

}  // namespace kith::python
