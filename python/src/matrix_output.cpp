#include "matrix_output.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <utility>

namespace kith::python {
namespace {

MutableMatrixView given_view(const GivenDistances& given, int64_t rows, int64_t cols) {
  if (const auto* on_device = std::get_if<DeviceArray>(&given)) {
    return {on_device->writable<float>("distances", rows, cols), DType::f32, {rows, cols, cols}, on_device->space()};
  }
  const auto& array = std::get<DistanceArray>(given);
  const auto given_rows = static_cast<int64_t>(array.shape(0));
  const auto given_cols = static_cast<int64_t>(array.shape(1));
  if (given_rows != rows || given_cols != cols) {
    throw InvalidArgument(
        fmt::format("out is {} x {}, but the distances are {} x {}", given_rows, given_cols, rows, cols));
  }
  return {array.data(), rows, cols};
}

}  // namespace

MatrixOutput::MatrixOutput(int64_t rows, int64_t cols, const std::optional<GivenDistances>& given,
                           const Resources& resources)
    : given_(given.has_value()) {
  if (given_) {
    view_ = given_view(*given, rows, cols);
    return;
  }
  fresh_ = MatrixBuffer(DType::f32, rows, cols, "the distances", resources);
  view_ = fresh_.mutable_view();
}

std::optional<nb::object> MatrixOutput::take() {
  if (given_) return std::nullopt;
  return vectors_array(std::move(fresh_));
}

}  // namespace kith::python
