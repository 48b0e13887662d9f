#include "array.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <utility>

namespace kith::python {
namespace {

template <typename Buffer>
nb::object owning_array(Buffer buffer, void* data, nb::dlpack::dtype dtype, int64_t rows, int64_t cols) {
  auto* kept = new Buffer(std::move(buffer));
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<Buffer*>(pointer); });
  const size_t shape[] = {static_cast<size_t>(rows), static_cast<size_t>(cols)};
  return nb::ndarray<nb::numpy, nb::ndim<2>>(data, 2, shape, owner, nullptr, dtype).cast();
}

}  // namespace

MatrixView view_of(const VectorArray& array, const char* name) {
  DType dtype = DType::f32;
  if (array.dtype() == nb::dtype<uint8_t>()) {
    dtype = DType::u8;
  } else if (array.dtype() != nb::dtype<float>()) {
    throw InvalidArgument(fmt::format("{} must be float32 or uint8", name));
  }
  MatrixShape shape;
  shape.rows = static_cast<int64_t>(array.shape(0));
  shape.cols = static_cast<int64_t>(array.shape(1));
  // Strides along an axis of one, or of an empty array, say nothing: any number may stand there.
  shape.row_stride = shape.rows > 1 ? array.stride(0) : shape.cols;
  if (shape.rows > 0 && shape.cols > 1 && array.stride(1) != 1) {
    throw InvalidArgument(fmt::format("{}: columns must be contiguous", name));
  }
  return {array.data(), dtype, shape};
}

nb::object ids_array(HostBuffer buffer, int64_t rows, int64_t cols) {
  void* data = buffer.data();
  return owning_array(std::move(buffer), data, nb::dtype<int64_t>(), rows, cols);
}

nb::object distances_array(HostBuffer buffer, int64_t rows, int64_t cols) {
  void* data = buffer.data();
  return owning_array(std::move(buffer), data, nb::dtype<float>(), rows, cols);
}

nb::object vectors_array(MatrixBuffer buffer) {
  const MutableMatrixView view = buffer.mutable_view();
  const auto dtype = view.dtype() == DType::u8 ? nb::dtype<uint8_t>() : nb::dtype<float>();
  return owning_array(std::move(buffer), view.data(), dtype, view.rows(), view.cols());
}

}  // namespace kith::python
