// The library's quantizers, as the package's classes of these names use them.
#include <kith/product_quantizer.hpp>
#include <kith/scalar_quantizer.hpp>

#include "quantizer_binding.hpp"

#include <utility>

namespace kith::python {
namespace {

ProductQuantizer make_product(int64_t parts, int bits, uint64_t seed, bool check_finite) {
  return ProductQuantizer({parts, bits, seed, check_finite});
}

ScalarQuantizer make_scalar(int bits, bool check_finite) { return ScalarQuantizer({bits, check_finite}); }

}  // namespace

void bind_quantizers(nb::module_& module) {
  bind_quantizer<ProductQuantizer>(module, "ProductQuantizer")
      .def(nb::new_(&make_product), nb::arg("parts"), nb::arg("bits"), nb::arg("seed"), nb::arg("check_finite"))
      .def(
          "set_values", [](ProductQuantizer& self, const FloatList& given) { self.set_values(list_of(given)); },
          nb::arg("codewords").noconvert(),
          nb::sig("def set_values(self, codewords: numpy.typing.NDArray[numpy.float32]) -> None"));
  bind_quantizer<ScalarQuantizer>(module, "ScalarQuantizer")
      .def(nb::new_(&make_scalar), nb::arg("bits"), nb::arg("check_finite"))
      .def(
          "set_values",
          [](ScalarQuantizer& self, int64_t dimension, const FloatList& given) { self.set_values(dimension, list_of(given)); },
          nb::arg("dimension"), nb::arg("ranges").noconvert(),
          nb::sig("def set_values(self, dimension: int, ranges: numpy.typing.NDArray[numpy.float32]) -> None"));
}

}  // namespace kith::python
