// bfloat16 arrays of other libraries, which numpy cannot take: their bits, as a uint16 array in the same memory.
#include "array.hpp"
#include "module.hpp"

#include <vector>

namespace kith::python {
namespace {

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

nb::object bits_of(const AnyArray& array) {
  constexpr nb::dlpack::dtype kBfloat16{static_cast<uint8_t>(nb::dlpack::dtype_code::Bfloat), 16, 1};
  if (array.dtype() != kBfloat16) throw nb::type_error("the array does not hold bfloat16");
  nb::capsule owner(new AnyArray(array), [](void* kept) noexcept { delete static_cast<AnyArray*>(kept); });
  std::vector<size_t> shape;
  std::vector<int64_t> strides;
  for (size_t axis = 0; axis < array.ndim(); ++axis) {
    shape.push_back(array.shape(axis));
    strides.push_back(array.stride(axis));
  }
  using Bits = nb::ndarray<nb::numpy, nb::ro>;
  return Bits(array.data(), array.ndim(), shape.data(), owner, strides.data(), nb::dtype<uint16_t>()).cast();
}

}  // namespace

void bind_bfloat16(nb::module_& module) {
  module.def("bfloat16_bits", &bits_of, nb::arg("array").noconvert(),
             nb::sig("def bfloat16_bits(array: typing.Any) -> " KITH_PY_HOST_VECTORS),
             "TypeError where the array speaks no DLPack or holds another dtype.");
}

}  // namespace kith::python
