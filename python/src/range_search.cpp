// Range search in one call: from arrays, or from files that need not fit in memory.
#include <kith/range_search.hpp>

#include "array.hpp"
#include "call.hpp"
#include "module.hpp"
#include "range_output.hpp"
#include "row_filter.hpp"
#include "vector_source.hpp"

#include <kith/error.hpp>
#include <kith/range_limit.hpp>
#include <kith/vector_file.hpp>

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <string>

namespace kith::python {
namespace {

RangeParams make_params(float radius, const std::string& metric, bool check_finite, const RowFilter& filter) {
  RangeParams params;
  params.radius = radius;
  params.metric = parse_metric(metric);
  params.check_finite = check_finite;
  params.filter = filter;
  params.validate();
  return params;
}

void check_self_join(int64_t queries, int64_t rows) {
  if (queries == rows) return;
  throw InvalidArgument(
      fmt::format("without_self drops row i from what query i finds, so that queries and base must be the same rows; "
                  "there are {} queries and {} rows",
                  queries, rows));
}

std::optional<RangeArrays> range_arrays(const VectorArray& queries, const VectorArray& base, float radius,
                                        const std::string& metric, bool check_finite, const FilterArray* filter,
                                        bool without_self, const CallOptions& options, const RangeRoom& room) {
  const MatrixView query_view = view_of(queries, "queries");
  const MatrixView base_view = view_of(base, "base");
  if (without_self) check_self_join(query_view.rows(), base_view.rows());
  RangeParams params = make_params(radius, metric, check_finite, filter_over(filter, base_view.rows()));
  if (room) {
    params.result_space = query_view.space();
    params.allocate = allocator_of(*room);
  }
  Call call(options);
  RangeNeighbors found;
  call.run([&] {
    found = range_search(query_view, base_view, params, call.resources());
    if (without_self && !room) drop_self(found);  // what lies in a GPU's memory the package goes over
  });
  if (room) return std::nullopt;
  return range_arrays_of(std::move(found));
}

RangeArrays range_files(const nb::object& queries, const nb::object& base, float radius, const std::string& metric,
                        bool check_finite, const FilterArray* filter, bool without_self, const CallOptions& options) {
  const VectorFile query_file = vector_file_of(queries);
  const VectorFile base_file = vector_file_of(base);
  if (without_self) check_self_join(query_file.rows(), base_file.rows());
  const RangeParams params = make_params(radius, metric, check_finite, filter_over(filter, base_file.rows()));
  Call call(options);
  RangeNeighbors found;
  call.run([&] {
    try {
      RangeParts parts(call.resources());
      const auto keep = [&](int64_t, const RangeView& part) { parts.append(part); };
      range_search(query_file, base_file, keep, params, call.resources());
      found = parts.join();
      if (without_self) drop_self(found);
    } catch (const OutOfMemory&) {
      throw_kept_range_limit(query_file, base_file, params, call.resources());
    }
  });
  return range_arrays_of(std::move(found));
}

}  // namespace

void bind_range_search(nb::module_& module) {
  module.def("range_search", &range_arrays, nb::arg("queries").noconvert(), nb::arg("base").noconvert(),
             nb::arg("radius"), nb::arg("metric"), nb::arg("check_finite"), nb::arg("filter").none(),
             nb::arg("without_self"), nb::arg("options"), nb::arg("room").none(),
             nb::sig("def range_search(queries: " KITH_PY_VECTORS ", base: " KITH_PY_VECTORS
                     ", radius: float, metric: str, check_finite: bool, filter: " KITH_PY_FILTER
                     ", without_self: bool, options: CallOptions, room: " KITH_PY_ROOM ") -> " KITH_PY_RANGE " | None"),
             "(offsets, ids, distances) in one block of Kith's memory each, or None after filling what room has made, "
             "in the memory where the queries lie.");
  module.def("range_search_files", &range_files, nb::arg("queries"), nb::arg("base"), nb::arg("radius"),
             nb::arg("metric"), nb::arg("check_finite"), nb::arg("filter").none(), nb::arg("without_self"), nb::arg("options"),
             nb::sig("def range_search_files(queries: object, base: object, radius: float, metric: str, "
                     "check_finite: bool, filter: " KITH_PY_FILTER
                     ", without_self: bool, options: CallOptions) -> " KITH_PY_RANGE),
             "The same between two files of vectors, named by their paths' bytes.");
}

}  // namespace kith::python
