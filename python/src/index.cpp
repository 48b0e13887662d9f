// The library's Index, as the package's class of that name uses it, with the arrays that it borrows.
#include <kith/index.hpp>

#include "array.hpp"
#include "call.hpp"
#include "module.hpp"
#include "neighbors_output.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <list>
#include <string>

namespace kith::python {
namespace {

struct BorrowingIndex {
  Index index;
  std::list<VectorArray> borrowed;  // references that keep the arrays alive; guarded by the GIL
};

BorrowingIndex make_index(const std::string& factory, const std::string& metric, bool check_finite, bool prepare) {
  return {Index(factory, {.metric = parse_metric(metric), .check_finite = check_finite, .prepare = prepare}), {}};
}

void add(BorrowingIndex& self, const VectorArray& rows, bool borrow, const CallOptions& options) {
  const MatrixView view = view_of(rows, "x");
  Call call(options);
  if (!borrow) {
    call.run([&] { self.index.add(view, Ownership::copy, call.resources()); });
    return;
  }
  // An exception, Ctrl-C for one, may come after the rows are in: then the index reads them, and they must stay.
  const auto kept = self.borrowed.insert(self.borrowed.end(), rows);
  bool added = false;
  try {
    call.run([&] {
      self.index.add(view, Ownership::borrow, call.resources());
      added = true;
    });
  } catch (...) {
    if (!added) self.borrowed.erase(kept);
    throw;
  }
}

std::optional<std::pair<nb::object, nb::object>> search(const BorrowingIndex& self, const VectorArray& queries,
                                                        int64_t k, const CallOptions& options, const GivenOutput& out) {
  KnnParams params;
  params.k = k;
  params.validate();
  const MatrixView view = view_of(queries, "queries");
  Call call(options);
  NeighborsOutput output(view.rows(), k, out, call.resources());
  call.run([&] { self.index.search(view, output.view(), k, call.resources()); });
  return output.take();
}

}  // namespace

void bind_index(nb::module_& module) {
  nb::class_<BorrowingIndex>(module, "Index")
      .def(nb::new_(&make_index), nb::arg("factory"), nb::arg("metric"), nb::arg("check_finite"), nb::arg("prepare"))
      .def("add", &add, nb::arg("x").noconvert(), nb::arg("borrow"), nb::arg("options"),
           nb::sig("def add(self, x: " KITH_PY_VECTORS ", borrow: bool, options: CallOptions) -> None"),
           "With borrow x is read in place and kept alive; it must not change.")
      .def("search", &search, nb::arg("queries").noconvert(), nb::arg("k"), nb::arg("options"),
           nb::arg("out").noconvert().none(),
           nb::sig("def search(self, queries: " KITH_PY_VECTORS
                   ", k: int, options: CallOptions, out: " KITH_PY_NEIGHBORS ") -> " KITH_PY_NEIGHBORS),
           "Returns (ids, distances), or None after filling out.")
      .def("__len__", [](const BorrowingIndex& self) { return self.index.size(); })
      .def_prop_ro("dimension", [](const BorrowingIndex& self) { return self.index.dimension(); })
      .def_prop_ro("factory", [](const BorrowingIndex& self) { return self.index.factory(); })
      .def_prop_ro("metric",
                   [](const BorrowingIndex& self) { return std::string(name_of(self.index.params().metric)); });
}

}  // namespace kith::python
