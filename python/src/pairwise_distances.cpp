// All distances between two arrays, into the caller's matrix or a fresh one.
#include <kith/one_call.hpp>
#include <kith/pairwise_distances.hpp>

#include "array.hpp"
#include "call.hpp"
#include "matrix_output.hpp"
#include "module.hpp"
#include "plain_array.hpp"
#include "tensor_place.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>
#include <string_view>

namespace kith::python {
namespace {

std::optional<nb::object> pairwise(const VectorArray& x, const VectorArray& y, const std::string& metric,
                                   bool check_finite, const CallOptions& options,
                                   const std::optional<GivenFloats>& out) {
  const MatrixView x_view = view_of(x, "x");
  const MatrixView y_view = view_of(y, "y");
  const PairwiseParams params{.metric = parse_metric(metric), .check_finite = check_finite};
  Call call(options);
  return as_one_call("the distances", call.resources(), [&](const Resources& resources) {
    auto output = MatrixOutput::floats(x_view.rows(), y_view.rows(), "the distances", out, resources);
    call.run([&] { pairwise_distances(x_view, y_view, output.view(), params, resources); });
    return output.take();
  });
}

// The same of what most people pass, in less time: numpy's arrays, plain names, few distances. None for all else.
nb::object pairwise_plain(nb::handle x, nb::handle y, nb::handle metric, nb::handle device, nb::handle threads) {
  const PlainRows rows(x);
  const PlainRows columns(y);
  const std::optional<std::string_view> name = plain_text(metric);
  if (!rows.view() || !columns.view() || rows.single() || columns.single() || !name) return nb::none();
  if (!PlainMatrix::suits(rows.view()->rows(), columns.view()->rows())) return nb::none();
  const PairwiseParams params{.metric = parse_metric(*name)};
  const std::optional<PlainSettings> settings = plain_settings(device, threads);
  if (!settings) return nb::none();
  const PlainMatrix found(rows.view()->rows(), columns.view()->rows());
  Call call(*settings);
  call.run([&] { pairwise_distances(*rows.view(), *columns.view(), found.view(), params, call.resources()); });
  return found.take();
}

// The same of tensors in the memory of one GPU, into a fresh one there.
void pairwise_tensors(const TensorPlace& x, const TensorPlace& y, const std::string& metric, int device, int threads,
                      uintptr_t stream, uintptr_t distances) {
  const MatrixView rows = view_of(x, device);
  const MatrixView columns = view_of(y, device);
  const MutableMatrixView found(reinterpret_cast<void*>(distances), DType::f32,
                                {rows.rows(), columns.rows(), columns.rows()}, rows.space());
  const PairwiseParams params{.metric = parse_metric(metric)};
  Call call({std::vector<DeviceParts>{{Device::cuda(device)}}, threads, {}, {}, nb::none(), stream});
  call.run([&] { pairwise_distances(rows, columns, found, params, call.resources()); });
}

}  // namespace

void bind_pairwise_distances(nb::module_& module) {
  module.def("pairwise_distances", &pairwise, nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("metric"),
             nb::arg("check_finite"), nb::arg("options"), nb::arg("out").noconvert().none(),
             nb::sig("def pairwise_distances(x: " KITH_PY_VECTORS ", y: " KITH_PY_VECTORS
                     ", metric: str, check_finite: bool, options: CallOptions, out: " KITH_PY_GIVEN_DISTANCES
                     ") -> " KITH_PY_DISTANCES " | None"),
             "Returns the matrix, or None after filling out.");
  module.def("pairwise_distances_plain", &pairwise_plain, nb::arg("x").none(), nb::arg("y").none(),
             nb::arg("metric").none(), nb::arg("device").none(), nb::arg("threads").none(),
             nb::sig("def pairwise_distances_plain(x: object, y: object, metric: object, device: object, "
                     "threads: object) -> " KITH_PY_DISTANCES " | None"),
             "The same, quickly, of numpy's arrays and names; None where they are something else.");
  module.def("pairwise_distances_of_tensors", &pairwise_tensors, nb::arg("x"), nb::arg("y"), nb::arg("metric"),
             nb::arg("device"), nb::arg("threads"), nb::arg("stream"), nb::arg("distances"),
             "The same, quickly, of matrices in a GPU's memory: (address, rows, columns, dtype), rows one after the other, "
             "and the address of rows of x x rows of y float32.");
  module.attr("MOST_NUMPY_BYTES") = kMostNumpyBytes;
}

}  // namespace kith::python
