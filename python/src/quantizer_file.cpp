// Quantizers in files.
#include "call.hpp"
#include "module.hpp"

#include <kith/quantizer.hpp>

#include <nanobind/stl/tuple.h>

#include <optional>
#include <string>
#include <tuple>

namespace kith::python {
namespace {

std::string path_of(const nb::bytes& path) { return {path.c_str(), path.size()}; }

template <typename Made>
void save(const Made& quantizer, const nb::bytes& path) {
  Call call;
  call.run([&] { save_quantizer(quantizer, path_of(path), call.resources()); });
}

// (quantizer, parts, bits, seed, check_finite), with 0 parts and seed for a scalar one, codebooks for parts of an
// additive one.
std::tuple<nb::object, int64_t, int, uint64_t, bool> load(const nb::bytes& path) {
  Call call;
  std::optional<Quantizer> loaded;
  call.run([&] { loaded = load_quantizer(path_of(path), call.resources()); });
  if (auto* const product = std::get_if<ProductQuantizer>(&*loaded)) {
    const ProductQuantizerParams params = product->params();
    return {nb::cast(std::move(*product)), params.parts, params.bits, params.seed, params.check_finite};
  }
  if (auto* const local = std::get_if<LocalSearchQuantizer>(&*loaded)) {
    const LocalSearchParams params = local->params();
    return {nb::cast(std::move(*local)), params.codebooks, params.bits, params.seed, params.check_finite};
  }
  if (auto* const residual = std::get_if<ResidualQuantizer>(&*loaded)) {
    const ResidualQuantizerParams params = residual->params();
    return {nb::cast(std::move(*residual)), params.codebooks, params.bits, params.seed, params.check_finite};
  }
  auto& scalar = std::get<ScalarQuantizer>(*loaded);
  const ScalarQuantizerParams params = scalar.params();
  return {nb::cast(std::move(scalar)), 0, params.bits, 0, params.check_finite};
}

}  // namespace

void bind_quantizer_file(nb::module_& module) {
  module.def("save_quantizer", &save<ProductQuantizer>, nb::arg("quantizer"), nb::arg("path"));
  module.def("save_quantizer", &save<ScalarQuantizer>, nb::arg("quantizer"), nb::arg("path"));
  module.def("save_quantizer", &save<LocalSearchQuantizer>, nb::arg("quantizer"), nb::arg("path"));
  module.def("save_quantizer", &save<ResidualQuantizer>, nb::arg("quantizer"), nb::arg("path"));
  module.def("load_quantizer", &load, nb::arg("path"),
             nb::sig("def load_quantizer(path: bytes) -> tuple[ProductQuantizer | ScalarQuantizer | "
                     "LocalSearchQuantizer | ResidualQuantizer, int, int, int, bool]"),
             "The quantizer, its parts (0 for a scalar one) or codebooks, bits, seed and check_finite.");
}

}  // namespace kith::python
