// Arrays across the border, without copies: Python's as views, Kith's buffers as numpy arrays that own them.
#pragma once

#include "device_array.hpp"

#include <kith/host_buffer.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/view.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/variant.h>

#include <cstdint>
#include <variant>

namespace kith::python {

namespace nb = nanobind;

// What the package passes: two axes, the columns of a row contiguous, on the host or in a GPU's memory. Bound with
// noconvert(), so that nanobind makes no copy of its own.
using HostVectorArray = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
using VectorArray = std::variant<DeviceArray, HostVectorArray>;
using IdArray = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstIdArray = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstIdList = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstByteList = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstDistanceArray = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using DistanceArray = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// How the stub writes these types; nanobind's own words leave an array's dtype open, which a strict checker refuses.
#define KITH_PY_HOST_VECTORS "numpy.typing.NDArray[typing.Any]"
#define KITH_PY_VECTORS "DeviceArray | numpy.typing.NDArray[typing.Any]"
#define KITH_PY_DISTANCES "numpy.typing.NDArray[numpy.float32]"
#define KITH_PY_NEIGHBORS "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float32]] | None"
#define KITH_PY_GIVEN_DISTANCES "DeviceArray | " KITH_PY_DISTANCES " | None"
#define KITH_PY_GIVEN KITH_PY_NEIGHBORS " | tuple[DeviceArray, DeviceArray]"

// The dtype of numpy that holds one of Kith's: uint16, as bits, for bf16, which numpy lacks.
nb::dlpack::dtype array_dtype(DType dtype);

// float32, float16, uint8, int8, float64, or (on the host, where numpy has no other) uint16 for the bits of bf16: the
// package has turned every other array away. `name` is the argument's, for the error. The view is valid as long as the
// array.
MatrixView view_of(const VectorArray& array, const char* name);
MatrixView view_of(const HostVectorArray& array, const char* name);
// The same of an array that is known to hold `dtype`.
MatrixView view_as(const HostVectorArray& array, DType dtype, const char* name);

// Numpy arrays of rows x cols that own the buffer.
nb::object ids_array(HostBuffer buffer, int64_t rows, int64_t cols);
nb::object distances_array(HostBuffer buffer, int64_t rows, int64_t cols);
nb::object vectors_array(MatrixBuffer buffer);

}  // namespace kith::python
