// Where a matrix that a call makes goes (distances, codes, vectors): the array that the caller gave, on the host or a GPU,
// or a fresh one in Kith's host memory, counted against its limit.
#pragma once

#include "array.hpp"

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace kith::python {

using GivenFloats = std::variant<DeviceArray, DistanceArray>;

class MatrixOutput {
 public:
  // `what` is for errors: "the distances". InvalidArgument where a given array is not rows x cols.
  static MatrixOutput floats(int64_t rows, int64_t cols, const char* what, const std::optional<GivenFloats>& given,
                             const Resources& resources);
  static MatrixOutput bytes(int64_t rows, int64_t cols, const char* what, const std::optional<DeviceArray>& given,
                            const Resources& resources);

  const MutableMatrixView& view() const { return view_; }

  // A fresh numpy array; none where the caller gave one. Call once, with the GIL.
  std::optional<nb::object> take();

 private:
  explicit MatrixOutput(const MutableMatrixView& given) : view_(given) {}
  explicit MatrixOutput(MatrixBuffer fresh) : fresh_(std::move(fresh)), view_(fresh_->mutable_view()) {}

  std::optional<MatrixBuffer> fresh_;
  MutableMatrixView view_;
};

}  // namespace kith::python
