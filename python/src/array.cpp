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

nb::dlpack::dtype array_dtype(DType dtype) {
  constexpr nb::dlpack::dtype kFloat16{static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
  switch (dtype) {
    case DType::f16: return kFloat16;
    case DType::bf16: return nb::dtype<uint16_t>();
    case DType::u8: return nb::dtype<uint8_t>();
    case DType::i8: return nb::dtype<int8_t>();
    case DType::f64: return nb::dtype<double>();
    default: return nb::dtype<float>();
  }
}

MatrixView view_of(const VectorArray& array, const char* name) {
  if (const auto* on_device = std::get_if<DeviceArray>(&array)) return on_device->view(name);
  return view_of(std::get<HostVectorArray>(array), name);
}

MatrixView view_of(const HostVectorArray& array, const char* name) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u8, DType::i8, DType::f64}) {
    if (array.dtype() == array_dtype(dtype)) return view_as(array, dtype, name);
  }
  throw InvalidArgument(fmt::format("{} must be float32, float16, bfloat16, uint8, int8 or float64", name));
}

MatrixView view_as(const HostVectorArray& array, DType dtype, const char* name) {
  if (array.dtype() != array_dtype(dtype)) {
    throw InvalidArgument(fmt::format("{} does not hold {} values", name, name_of(dtype)));
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
  return owning_array(std::move(buffer), view.data(), array_dtype(view.dtype()), view.rows(), view.cols());
}

}  // namespace kith::python
