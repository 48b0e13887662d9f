// All distances between two arrays, into the caller's matrix or a fresh one.
#include <kith/pairwise_distances.hpp>

#include "array.hpp"
#include "call.hpp"
#include "matrix_output.hpp"
#include "module.hpp"

#include "exact/search_limit.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>

namespace kith::python {
namespace {

std::optional<nb::object> pairwise(const VectorArray& x, const VectorArray& y, const std::string& metric,
                                   bool check_finite, const CallOptions& options,
                                   const std::optional<GivenFloats>& out) {
  const MatrixView x_view = view_of(x, "x");
  const MatrixView y_view = view_of(y, "y");
  const PairwiseParams params{.metric = parse_metric(metric), .check_finite = check_finite};
  Call call(options);
  const auto needed = [&] { return pairwise_host_bytes(x_view, y_view, !out, call.resources()); };
  return naming_host_limit(needed, call.resources(), [&] {
    auto output = MatrixOutput::floats(x_view.rows(), y_view.rows(), "the distances", out, call.resources());
    call.run([&] { pairwise_distances(x_view, y_view, output.view(), params, call.resources()); });
    return output.take();
  });
}

}  // namespace

void bind_pairwise_distances(nb::module_& module) {
  module.def("pairwise_distances", &pairwise, nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("metric"),
             nb::arg("check_finite"), nb::arg("options"), nb::arg("out").noconvert().none(),
             nb::sig("def pairwise_distances(x: " KITH_PY_VECTORS ", y: " KITH_PY_VECTORS
                     ", metric: str, check_finite: bool, options: CallOptions, out: " KITH_PY_GIVEN_DISTANCES
                     ") -> " KITH_PY_DISTANCES " | None"),
             "Returns the matrix, or None after filling out.");
}

}  // namespace kith::python
