// The library's additive quantizers, as the package's classes of these names use them.
#include <kith/local_search_quantizer.hpp>
#include <kith/one_call.hpp>
#include <kith/residual_quantizer.hpp>

#include "quantizer_binding.hpp"

#include <kith/error.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kith::python {
namespace {

// Where `start` is "given", the codes to begin with are `given`, and `out` is none.
std::optional<nb::object> encode_local(const LocalSearchQuantizer& self, const VectorArray& x, int64_t rounds,
                                       int64_t from_round, int64_t first_row, uint64_t seed, const std::string& start,
                                       const std::optional<HostVectorArray>& given, const CallOptions& options,
                                       const std::optional<DeviceArray>& out) {
  const MatrixView rows = view_of(x, "x");
  const LocalSearchEncoding encoding{.rounds = rounds,
                                     .from_round = from_round,
                                     .first_row = first_row,
                                     .start = parse_code_start(start),
                                     .seed = seed};
  Call call(options);
  return as_one_call("the codes", call.resources(), [&](const Resources& resources) {
    auto codes = MatrixOutput::bytes(rows.rows(), self.code_bytes(), "the codes", out, resources);
    if (given && !out && !counts_only(resources)) {
      const MatrixView from = view_as(*given, DType::u8, "start");
      if (from.rows() != rows.rows() || from.cols() != self.code_bytes()) {
        throw InvalidArgument("start is not of the shape of the codes");
      }
      for (int64_t i = 0; i < from.rows(); ++i) {
        std::memcpy(codes.view().row(i), from.row(i), static_cast<size_t>(from.cols()));
      }
    }
    call.run([&] { self.encode(rows, codes.view(), encoding, resources); });
    return codes.take();
  });
}

nb::object encode_local_file(const LocalSearchQuantizer& self, const nb::object& source, int64_t rounds,
                             int64_t from_round, int64_t first_row, uint64_t seed, const std::string& start,
                             const CallOptions& options) {
  const LocalSearchEncoding encoding{.rounds = rounds,
                                     .from_round = from_round,
                                     .first_row = first_row,
                                     .start = parse_code_start(start),
                                     .seed = seed};
  return codes_of_file(self, source, options, encoding);
}

template <typename Quantizer>
nb::class_<Quantizer> bind_additive(nb::module_& module, const char* name) {
  return bind_quantizer<Quantizer>(module, name)
      .def(
          "set_values",
          [](Quantizer& self, const FloatList& given) {
            self.set_values(list_of(given));
          },
          nb::arg("codebooks").noconvert(),
          nb::sig("def set_values(self, codebooks: numpy.typing.NDArray[numpy.float32]) -> None"))
      .def_prop_ro("codebooks", [](const Quantizer& self) { return self.params().codebooks; })
      .def_prop_ro("bits", [](const Quantizer& self) { return self.params().bits; });
}

LocalSearchQuantizer make_local(int64_t codebooks, int bits, int64_t rounds, int64_t train_search_rounds,
                                const std::string& train_start, double lambda, double anneal, int64_t sweeps,
                                int64_t perturbed, const std::string& order, uint64_t seed, bool check_finite) {
  LocalSearchParams params;
  params.codebooks = codebooks;
  params.bits = bits;
  params.rounds = rounds;
  params.train_search_rounds = train_search_rounds;
  params.train_start = parse_additive_start(train_start);
  params.regularization = lambda;
  params.anneal = anneal;
  params.sweeps = sweeps;
  params.perturbed = perturbed;
  params.order = parse_sweep_order(order);
  params.seed = seed;
  params.check_finite = check_finite;
  return LocalSearchQuantizer(params);
}

ResidualQuantizer make_residual(int64_t codebooks, int bits, int64_t beam, uint64_t seed, bool check_finite) {
  return ResidualQuantizer({codebooks, bits, beam, seed, check_finite});
}

}  // namespace

void bind_additive_quantizers(nb::module_& module) {
  bind_additive<LocalSearchQuantizer>(module, "LocalSearchQuantizer")
      .def(nb::new_(&make_local), nb::arg("codebooks"), nb::arg("bits"), nb::arg("rounds"),
           nb::arg("train_search_rounds"), nb::arg("train_start"), nb::arg("lambda_"), nb::arg("anneal"),
           nb::arg("sweeps"), nb::arg("perturbed"), nb::arg("order"), nb::arg("seed"), nb::arg("check_finite"))
      .def("encode", &encode_local, nb::arg("x").noconvert(), nb::arg("rounds"), nb::arg("from_round"),
           nb::arg("first_row"), nb::arg("seed"), nb::arg("start"), nb::arg("given").none(), nb::arg("options"),
           nb::arg("out").none(),
           nb::sig("def encode(self, x: " KITH_PY_VECTORS
                   ", rounds: int, from_round: int, first_row: int, seed: int, start: str, given: " KITH_PY_HOST_VECTORS
                   " | None, options: CallOptions, out: DeviceArray | None) -> "
                   "numpy.typing.NDArray[numpy.uint8] | None"))
      .def("encode_file", &encode_local_file, nb::arg("path"), nb::arg("rounds"), nb::arg("from_round"),
           nb::arg("first_row"), nb::arg("seed"), nb::arg("start"), nb::arg("options"),
           nb::sig("def encode_file(self, path: object, rounds: int, from_round: int, first_row: int, seed: int, "
                   "start: str, options: CallOptions) -> numpy.typing.NDArray[numpy.uint8]"))
      .def("history", &LocalSearchQuantizer::history)
      .def_prop_ro("sweeps", [](const LocalSearchQuantizer& self) { return self.params().sweeps; })
      .def_prop_ro("perturbed", [](const LocalSearchQuantizer& self) { return self.params().perturbed; })
      .def_prop_ro("order", [](const LocalSearchQuantizer& self) { return std::string(name_of(self.params().order)); });
  bind_additive<ResidualQuantizer>(module, "ResidualQuantizer")
      .def(nb::new_(&make_residual), nb::arg("codebooks"), nb::arg("bits"), nb::arg("beam"), nb::arg("seed"),
           nb::arg("check_finite"))
      .def_prop_ro("beam", [](const ResidualQuantizer& self) { return self.params().beam; });
}

}  // namespace kith::python
