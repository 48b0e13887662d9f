// What all of the library's quantizers bind alike: train, encode, decode, lookup tables and what was trained.
#pragma once

#include "array.hpp"
#include "call.hpp"
#include "matrix_output.hpp"
#include "module.hpp"
#include "vector_source.hpp"

#include <kith/metric.hpp>
#include <kith/one_call.hpp>
#include <kith/vector_file.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kith::python {

using FloatList = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline VectorView<const float> list_of(const FloatList& values) {
  return {values.data(), static_cast<int64_t>(values.shape(0)), {}};
}

template <typename Quantizer>
void train(Quantizer& self, const VectorArray& x, const CallOptions& options) {
  const MatrixView rows = view_of(x, "x");
  Call call(options);
  call.run([&] { self.train(rows, call.resources()); });
}

template <typename Quantizer>
void train_file(Quantizer& self, const nb::object& source, const CallOptions& options) {
  const VectorFile file = vector_file_of(source);
  Call call(options);
  call.run([&] { self.train(file, call.resources()); });
}

template <typename Quantizer>
std::optional<nb::object> encode(const Quantizer& self, const VectorArray& x, const CallOptions& options,
                                 const std::optional<DeviceArray>& out) {
  const MatrixView rows = view_of(x, "x");
  Call call(options);
  return as_one_call("the codes", call.resources(), [&](const Resources& resources) {
    auto codes = MatrixOutput::bytes(rows.rows(), self.code_bytes(), "the codes", out, resources);
    call.run([&] { self.encode(rows, codes.view(), resources); });
    return codes.take();
  });
}

template <typename Quantizer, typename... How>
nb::object codes_of_file(const Quantizer& self, const nb::object& source, const CallOptions& options, const How&... how) {
  const VectorFile file = vector_file_of(source);
  Call call(options);
  return as_one_call("the codes", call.resources(), [&](const Resources& resources) {
    auto codes = MatrixOutput::bytes(file.rows(), self.code_bytes(), "the codes", std::nullopt, resources);
    call.run([&] { self.encode(file, codes.view(), how..., resources); });
    return *codes.take();
  });
}

template <typename Quantizer>
nb::object encode_file(const Quantizer& self, const nb::object& source, const CallOptions& options) {
  return codes_of_file(self, source, options);
}

template <typename Quantizer>
std::optional<nb::object> decode(const Quantizer& self, const VectorArray& codes, const CallOptions& options,
                                 const std::optional<DeviceArray>& out) {
  const MatrixView rows = view_of(codes, "codes");
  Call call(options);
  return as_one_call("the decoded vectors", call.resources(), [&](const Resources& resources) {
    auto vectors = MatrixOutput::floats(rows.rows(), self.dimension(), "the decoded vectors", out, resources);
    call.run([&] { self.decode(rows, vectors.view(), resources); });
    return vectors.take();
  });
}

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
nb::object values(const Quantizer& self) {
  const std::vector<float> from = self.values();
  MatrixBuffer copy(DType::f32, 1, static_cast<int64_t>(from.size()), "a copy for Python", Resources());
  std::copy(from.begin(), from.end(), static_cast<float*>(copy.mutable_view().data()));
  return vectors_array(std::move(copy));
}

template <typename Quantizer>
nb::class_<Quantizer> bind_quantizer(nb::module_& module, const char* name) {
  return nb::class_<Quantizer>(module, name)
      .def("train", &train<Quantizer>, nb::arg("x").noconvert(), nb::arg("options"),
           nb::sig("def train(self, x: " KITH_PY_VECTORS ", options: CallOptions) -> None"))
      .def("train_file", &train_file<Quantizer>, nb::arg("path"), nb::arg("options"),
           nb::sig("def train_file(self, path: object, options: CallOptions) -> None"))
      .def("encode", &encode<Quantizer>, nb::arg("x").noconvert(), nb::arg("options"), nb::arg("out").none(),
           nb::sig("def encode(self, x: " KITH_PY_VECTORS
                   ", options: CallOptions, out: DeviceArray | None) -> "
                   "numpy.typing.NDArray[numpy.uint8] | None"))
      .def("encode_file", &encode_file<Quantizer>, nb::arg("path"), nb::arg("options"),
           nb::sig("def encode_file(self, path: object, options: CallOptions) -> numpy.typing.NDArray[numpy.uint8]"))
      .def("decode", &decode<Quantizer>, nb::arg("codes").noconvert(), nb::arg("options"), nb::arg("out").none(),
           nb::sig("def decode(self, codes: " KITH_PY_VECTORS
                   ", options: CallOptions, out: DeviceArray | None) -> "
                   "numpy.typing.NDArray[numpy.float32] | None"))
      .def("lookup_table", &lookup_table<Quantizer>, nb::arg("queries").noconvert(), nb::arg("metric"),
           nb::arg("entries"), nb::arg("options"),
           nb::sig("def lookup_table(self, queries: " KITH_PY_VECTORS
                   ", metric: str, entries: int, options: CallOptions) -> numpy.typing.NDArray[numpy.float32]"))
      .def("values", &values<Quantizer>, nb::sig("def values(self) -> numpy.typing.NDArray[numpy.float32]"),
           "What was trained, as one row.")
      .def_prop_ro("trained", &Quantizer::trained)
      .def_prop_ro("dimension", &Quantizer::dimension)
      .def_prop_ro("code_bytes", &Quantizer::code_bytes);
}

}  // namespace kith::python
