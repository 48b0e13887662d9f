#include "matrix_output.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <utility>

namespace kith::python {
namespace {

MutableMatrixView view_of_given(const GivenFloats& given, int64_t rows, int64_t cols, const char* what) {
  if (const auto* on_device = std::get_if<DeviceArray>(&given)) {
    return {on_device->writable<float>(what, rows, cols), DType::f32, {rows, cols, cols}, on_device->space()};
  }
  const auto& array = std::get<DistanceArray>(given);
  const auto given_rows = static_cast<int64_t>(array.shape(0));
  const auto given_cols = static_cast<int64_t>(array.shape(1));
  if (given_rows != rows || given_cols != cols) {
    throw InvalidArgument(fmt::format("out is {} x {}, but {} are {} x {}", given_rows, given_cols, what, rows, cols));
  }
  return {array.data(), rows, cols};
}

}  // namespace

MatrixOutput MatrixOutput::floats(int64_t rows, int64_t cols, const char* what,
                                  const std::optional<GivenFloats>& given, const Resources& resources) {
  if (given) return MatrixOutput(view_of_given(*given, rows, cols, what));
  return MatrixOutput(MatrixBuffer(DType::f32, rows, cols, what, resources));
}

MatrixOutput MatrixOutput::bytes(int64_t rows, int64_t cols, const char* what, const std::optional<DeviceArray>& given,
                                 const Resources& resources) {
  if (!given) return MatrixOutput(MatrixBuffer(DType::u8, rows, cols, what, resources));
  return MatrixOutput({given->writable<uint8_t>(what, rows, cols), DType::u8, {rows, cols, cols}, given->space()});
}

std::optional<nb::object> MatrixOutput::take() {
  if (!fresh_) return std::nullopt;
  return vectors_array(std::move(*fresh_));
}

}  // namespace kith::python
