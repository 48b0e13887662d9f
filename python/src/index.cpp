// The library's Index, as the package's class of that name uses it, with the arrays that it borrows.
//
// A borrowed array may lead back to its index (an attribute of it, for instance). Python's collector finds such cycles
// through the two slots below.
#include <kith/index.hpp>

#include "array.hpp"
#include "call.hpp"
#include "module.hpp"
#include "neighbors_output.hpp"
#include "range_output.hpp"
#include "row_filter.hpp"

#include "exact/knn_checks.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <list>
#include <string>

namespace kith::python {
namespace {

struct BorrowingIndex {
  Index index;
  std::list<nb::object> borrowed;  // references that keep the arrays alive; guarded by the GIL
};

int visit_borrowed(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const nb::object& array : nb::inst_ptr<BorrowingIndex>(self)->borrowed) Py_VISIT(array.ptr());
  return 0;
}

int clear_borrowed(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  auto& held = *nb::inst_ptr<BorrowingIndex>(self);
  held.index = Index(held.index.factory(), held.index.params());  // no search may see rows that are gone
  std::list<nb::object> let_go;
  let_go.swap(held.borrowed);  // letting go may run Python code, which must find the list in order
  return 0;
}

PyType_Slot index_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_borrowed)},
                             {Py_tp_clear, reinterpret_cast<void*>(clear_borrowed)},
                             {0, nullptr}};

BorrowingIndex make_index(const std::string& factory, const std::string& metric, bool check_finite, bool prepare) {
  return {Index(factory, {.metric = parse_metric(metric), .check_finite = check_finite, .prepare = prepare}), {}};
}

void add(BorrowingIndex& self, const nb::object& x, bool borrow, const CallOptions& options) {
  const auto rows = nb::cast<VectorArray>(x, false);
  const MatrixView view = view_of(rows, "x");
  Call call(options);
  if (!borrow) {
    call.run([&] { self.index.add(view, Ownership::copy, call.resources()); });
    return;
  }
  // An exception, Ctrl-C for one, may come after the rows are in: then the index reads them, and they must stay.
  const auto kept = self.borrowed.insert(self.borrowed.end(), x);
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
                                                        int64_t k, const FilterArray* filter,
                                                        const CallOptions& options, const GivenOutput& out) {
  KnnParams params;
  params.k = k;
  params.validate();
  const MatrixView view = view_of(queries, "queries");
  const SearchParams wanted{.k = k, .filter = filter_over(filter, self.index.size())};
  check_result_size(view.rows(), k);
  Call call(options);
  const SearchShape shape{
      .queries = view.rows(), .rows = self.index.size(), .cols = view.cols(), .metric = self.index.params().metric};
  const SearchWish wish{.k = k};
  return naming_the_limit(limited(shape, wish, wanted.filter, out), call.resources(), [&] {
    NeighborsOutput output(view.rows(), k, out, call.resources());
    call.run([&] { self.index.search(view, output.view(), wanted, call.resources()); });
    return output.take();
  });
}

std::optional<RangeArrays> range_search(const BorrowingIndex& self, const VectorArray& queries, float radius,
                                        const FilterArray* filter, const CallOptions& options, const RangeRoom& room) {
  const MatrixView view = view_of(queries, "queries");
  RangeSearchParams wanted{.radius = radius, .filter = filter_over(filter, self.index.size())};
  if (room) {
    wanted.result_space = view.space();
    wanted.allocate = allocator_of(*room);
  }
  Call call(options);
  RangeNeighbors found;
  call.run([&] { found = self.index.range_search(view, wanted, call.resources()); });
  if (room) return std::nullopt;
  return range_arrays_of(std::move(found));
}

nb::list borrowed(const BorrowingIndex& self) {
  nb::list arrays;
  for (const nb::object& array : self.borrowed) arrays.append(array);
  return arrays;
}

}  // namespace

void bind_index(nb::module_& module) {
  nb::class_<BorrowingIndex>(module, "Index", nb::type_slots(index_slots))
      .def(nb::new_(&make_index), nb::arg("factory"), nb::arg("metric"), nb::arg("check_finite"), nb::arg("prepare"))
      .def("add", &add, nb::arg("x").noconvert(), nb::arg("borrow"), nb::arg("options"),
           nb::sig("def add(self, x: " KITH_PY_VECTORS ", borrow: bool, options: CallOptions) -> None"),
           "With borrow x is read in place and kept alive; it must not change.")
      .def("search", &search, nb::arg("queries").noconvert(), nb::arg("k"), nb::arg("filter").none(),
           nb::arg("options"), nb::arg("out").noconvert().none(),
           nb::sig("def search(self, queries: " KITH_PY_VECTORS ", k: int, filter: " KITH_PY_FILTER
                   ", options: CallOptions, out: " KITH_PY_GIVEN ") -> " KITH_PY_NEIGHBORS),
           "Returns (ids, distances), or None after filling out.")
      .def("range_search", &range_search, nb::arg("queries").noconvert(), nb::arg("radius"), nb::arg("filter").none(),
           nb::arg("options"), nb::arg("room").none(),
           nb::sig("def range_search(self, queries: " KITH_PY_VECTORS ", radius: float, filter: " KITH_PY_FILTER
                   ", options: CallOptions, room: " KITH_PY_ROOM ") -> " KITH_PY_RANGE " | None"))
      .def_prop_ro("borrowed", &borrowed, nb::sig("def borrowed(self) -> list[" KITH_PY_VECTORS "]"),
                   "The arrays that are read in place.")
      .def("__len__", [](const BorrowingIndex& self) { return self.index.size(); })
      .def_prop_ro("dimension", [](const BorrowingIndex& self) { return self.index.dimension(); })
      .def_prop_ro("factory", [](const BorrowingIndex& self) { return self.index.factory(); })
      .def_prop_ro("metric",
                   [](const BorrowingIndex& self) { return std::string(name_of(self.index.params().metric)); });
}

}  // namespace kith::python
