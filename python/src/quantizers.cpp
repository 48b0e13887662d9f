// The library's quantizers, as the package's classes of these names use them.
#include <kith/product_quantizer.hpp>
#include <kith/scalar_quantizer.hpp>

#include "quantizer_binding.hpp"

#include <kith/metric.hpp>

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

namespace kith::python {
namespace {

// queries x entries; the package gives it its three axes.
template <typename Quantizer>
nb::object lookup_table(const Quantizer& self, const VectorArray& queries, const std::string& metric, int64_t entries,
                        const CallOptions& options) {
  const MatrixView rows = view_of(queries, "queries");
  Call call(options);
  MatrixBuffer out(DType::f32, rows.rows(), entries, "the lookup tables", call.resources());
  call.run([&] { self.lookup_table(rows, parse_metric(metric), out.mutable_view(), call.resources()); });
  return vectors_array(std::move(out));
}

template <typename Quantizer>
nb::class_<Quantizer> bind_tabled(nb::module_& module, const char* name) {
  return bind_quantizer<Quantizer>(module, name)
      .def("lookup_table", &lookup_table<Quantizer>, nb::arg("queries").noconvert(), nb::arg("metric"),
           nb::arg("entries"), nb::arg("options"),
           nb::sig("def lookup_table(self, queries: " KITH_PY_VECTORS
                   ", metric: str, entries: int, options: CallOptions) -> numpy.typing.NDArray[numpy.float32]"));
}

ProductQuantizer make_product(int64_t parts, int bits, uint64_t seed, bool check_finite) {
  return ProductQuantizer({parts, bits, seed, check_finite});
}

ScalarQuantizer make_scalar(int bits, bool check_finite) { return ScalarQuantizer({bits, check_finite}); }

}  // namespace

void bind_quantizers(nb::module_& module) {
  bind_tabled<ProductQuantizer>(module, "ProductQuantizer")
      .def(nb::new_(&make_product), nb::arg("parts"), nb::arg("bits"), nb::arg("seed"), nb::arg("check_finite"))
      .def(
          "set_values", [](ProductQuantizer& self, const FloatList& given) { self.set_values(list_of(given)); },
          nb::arg("codewords").noconvert(),
          nb::sig("def set_values(self, codewords: numpy.typing.NDArray[numpy.float32]) -> None"));
  bind_tabled<ScalarQuantizer>(module, "ScalarQuantizer")
      .def(nb::new_(&make_scalar), nb::arg("bits"), nb::arg("check_finite"))
      .def(
          "set_values",
          [](ScalarQuantizer& self, int64_t cols, const FloatList& given) { self.set_values(cols, list_of(given)); },
          nb::arg("cols"), nb::arg("ranges").noconvert(),
          nb::sig("def set_values(self, cols: int, ranges: numpy.typing.NDArray[numpy.float32]) -> None"));
}

}  // namespace kith::python
