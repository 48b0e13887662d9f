// Graphs made of graphs: merged, extended, refined.
#include <kith/graph_merge.hpp>
#include <kith/graph_of_files.hpp>

#include "array.hpp"
#include "call.hpp"
#include "graph_arrays.hpp"
#include "graph_params.hpp"
#include "module.hpp"
#include "vector_source.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <vector>

namespace kith::python {
namespace {

nb::tuple merge(const std::vector<GivenGraph*>& graphs, const std::vector<VectorArray>& rows, const nb::dict& asked,
                bool check_finite, const CallOptions& options, const GivenOutput& out) {
  const GraphMergeParams params = merge_params(asked, check_finite);
  params.validate();
  std::vector<GraphPart> parts;
  int64_t all = 0;
  for (size_t i = 0; i < graphs.size(); ++i) {
    parts.push_back({graphs[i]->graph(), view_of(rows[i], "x")});
    all += parts[i].x.rows();
  }
  return made_graph(
      out, all, parts.at(0).graph.k(), options,
      [&](const Resources& resources) { return merge_graphs(parts, params, resources); },
      [&](const NeighborsView& view, const Resources& resources) { return merge_graphs(parts, view, params, resources); });
}

nb::dict merge_to_folder(const std::vector<GivenGraph*>& graphs, const nb::list& sources, const nb::bytes& folder,
                         const nb::bytes& work, bool keep_work, const nb::dict& asked, bool check_finite,
                         const CallOptions& options) {
  const GraphMergeParams params = merge_params(asked, check_finite);
  std::vector<GraphOfFile> parts;
  for (size_t i = 0; i < graphs.size(); ++i) {
    parts.push_back({graphs[i]->graph(), vector_file_of(nb::borrow<nb::object>(sources[i]))});
  }
  const GraphWork kept{{work.c_str(), work.size()}, keep_work, {}};
  const std::string path(folder.c_str(), folder.size());
  Call call(options);
  GraphReport report;
  call.run([&] { report = merge_graphs_folder(parts, path, params, kept, call.resources()); });
  return report_dict(report);
}

nb::dict extend_to_folder(const GivenGraph& graph, const nb::object& x, const nb::object& fresh,
                          const nb::bytes& folder, const nb::bytes& work, bool keep_work, const nb::dict& asked,
                          bool check_finite, const CallOptions& options) {
  const GraphMergeParams params = merge_params(asked, check_finite);
  const GraphOfFile old{graph.graph(), vector_file_of(x)};
  const VectorFile added = vector_file_of(fresh);
  const GraphWork kept{{work.c_str(), work.size()}, keep_work, {}};
  const std::string path(folder.c_str(), folder.size());
  Call call(options);
  GraphReport report;
  call.run([&] { report = extend_graph_folder(old, added, path, params, kept, call.resources()); });
  return report_dict(report);
}

nb::tuple extend(const GivenGraph& graph, const VectorArray& x, const VectorArray& fresh, const nb::dict& asked,
                 bool check_finite, const CallOptions& options, const GivenOutput& out) {
  const GraphMergeParams params = merge_params(asked, check_finite);
  const KnnGraph given = graph.graph();
  const MatrixView old = view_of(x, "x");
  const MatrixView added = view_of(fresh, "new");
  return made_graph(
      out, old.rows() + added.rows(), given.k(), options,
      [&](const Resources& resources) { return extend_graph(given, old, added, params, resources); },
      [&](const NeighborsView& view, const Resources& resources) {
        return extend_graph(given, old, added, view, params, resources);
      });
}

nb::tuple refine(const GivenGraph& graph, const VectorArray& x, const nb::dict& asked, bool check_finite,
                 const CallOptions& options, const GivenOutput& out) {
  const GraphMergeParams params = merge_params(asked, check_finite);
  params.validate();
  const KnnGraph given = graph.graph();
  const MatrixView rows = view_of(x, "x");
  return made_graph(
      out, rows.rows(), given.k(), options,
      [&](const Resources& resources) { return refine_graph(given, rows, params, resources); },
      [&](const NeighborsView& view, const Resources& resources) {
        return refine_graph(given, rows, view, params, resources);
      });
}

#define KITH_PY_GIVEN_PARAMS \
  "params: dict[str, typing.Any], check_finite: bool, options: CallOptions, out: " KITH_PY_GIVEN

}  // namespace

void bind_graph_merge(nb::module_& module) {
  module.def("merge_graphs", &merge, nb::arg("graphs"), nb::arg("rows"), nb::arg("params"), nb::arg("check_finite"),
             nb::arg("options"), nb::arg("out").noconvert().none(),
             nb::sig("def merge_graphs(graphs: list[GivenGraph], rows: list[" KITH_PY_VECTORS "], " KITH_PY_GIVEN_PARAMS
                     ") -> " KITH_PY_MADE_GRAPH));
  module.def(
      "merge_graphs_folder", &merge_to_folder, nb::arg("graphs"), nb::arg("sources"), nb::arg("folder"),
      nb::arg("work"), nb::arg("keep_work"), nb::arg("params"), nb::arg("check_finite"), nb::arg("options"),
      nb::sig(
          "def merge_graphs_folder(graphs: list[GivenGraph], sources: list[typing.Any], folder: bytes, work: bytes, "
          "keep_work: bool, params: dict[str, typing.Any], check_finite: bool, options: CallOptions) -> "
          "dict[str, typing.Any]"),
      "Writes the graph to a folder, and returns the report.");
  module.def("extend_graph", &extend, nb::arg("graph"), nb::arg("x").noconvert(), nb::arg("new").noconvert(),
             nb::arg("params"), nb::arg("check_finite"), nb::arg("options"), nb::arg("out").noconvert().none(),
             nb::sig("def extend_graph(graph: GivenGraph, x: " KITH_PY_VECTORS ", new: " KITH_PY_VECTORS
                     ", " KITH_PY_GIVEN_PARAMS ") -> " KITH_PY_MADE_GRAPH));
  module.def(
      "extend_graph_folder", &extend_to_folder, nb::arg("graph"), nb::arg("x"), nb::arg("new"), nb::arg("folder"),
      nb::arg("work"), nb::arg("keep_work"), nb::arg("params"), nb::arg("check_finite"), nb::arg("options"),
      nb::sig("def extend_graph_folder(graph: GivenGraph, x: typing.Any, new: typing.Any, folder: bytes, work: bytes, "
              "keep_work: bool, params: dict[str, typing.Any], check_finite: bool, options: CallOptions) -> "
              "dict[str, typing.Any]"),
      "Writes the graph to a folder, and returns the report.");
  module.def("refine_graph", &refine, nb::arg("graph"), nb::arg("x").noconvert(), nb::arg("params"),
             nb::arg("check_finite"), nb::arg("options"), nb::arg("out").noconvert().none(),
             nb::sig("def refine_graph(graph: GivenGraph, x: " KITH_PY_VECTORS ", " KITH_PY_GIVEN_PARAMS
                     ") -> " KITH_PY_MADE_GRAPH));
}

}  // namespace kith::python
