// Collections. The package gives ids as an int64 array or a list of str, columns as lists of Python's values, and
// parameters of a `where` likewise; what comes back is the same.
#include <kith/collection.hpp>

#include "array.hpp"
#include "call.hpp"
#include "gil.hpp"
#include "module.hpp"
#include "range_output.hpp"

#include <kith/error.hpp>
#include <kith/knn.hpp>

#include <fmt/format.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kith::python {
namespace {

#define KITH_PY_ITEM_IDS "numpy.typing.NDArray[numpy.int64] | list[str]"
#define KITH_PY_VALUES "list[typing.Any]"

std::string path_of(const nb::bytes& path) { return {path.c_str(), path.size()}; }

std::string text_of(nb::handle value) {
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (data == nullptr) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

nb::object text_in_python(std::string_view text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

ItemIds ids_of(const nb::object& ids) {
  if (ids.is_none()) return {};
  if (PyList_Check(ids.ptr())) {
    std::vector<std::string> texts;
    texts.reserve(nb::len(ids));
    for (const nb::handle id : nb::cast<nb::list>(ids)) texts.push_back(text_of(id));
    return texts;
  }
  const auto array = nb::cast<ConstIdList>(ids, false);
  return std::vector<int64_t>(array.data(), array.data() + array.size());
}

nb::object array_of_numbers(const int64_t* data, int64_t count) {
  auto* const copy = new std::vector<int64_t>(data, data + count);
  nb::capsule owner(copy, [](void* kept) noexcept { delete static_cast<std::vector<int64_t>*>(kept); });
  const size_t shape[] = {static_cast<size_t>(count)};
  return nb::ndarray<nb::numpy, nb::ndim<1>>(copy->data(), 1, shape, owner, nullptr, nb::dtype<int64_t>()).cast();
}

nb::object list_of_texts(const std::vector<std::string>& texts) {
  nb::list list;
  for (const std::string& text : texts) list.append(text_in_python(text));
  return list;
}

nb::object ids_in_python(const ItemIds& ids) {
  return ids.type() == IdType::text ? list_of_texts(ids.texts()) : array_of_numbers(ids.numbers().data(), ids.size());
}

// The package has checked the types of columns; parameters may be anything.
ColumnValue value_of(nb::handle value) {
  PyObject* const object = value.ptr();
  if (value.is_none()) return {};
  if (PyBool_Check(object)) return object == Py_True;
  if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
  if (PyUnicode_Check(object)) return text_of(value);
  if (PyLong_Check(object)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) throw InvalidArgument("an integer of more than 64 bits, which SQLite does not hold");
    return static_cast<int64_t>(number);
  }
  throw nb::type_error("a value is no int, float, str, bool or None, which columns hold");
}

nb::object value_in_python(const ColumnValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return nb::int_(*number);
  if (const auto* real = std::get_if<double>(&value)) return nb::float_(*real);
  if (const auto* flag = std::get_if<bool>(&value)) return nb::bool_(*flag);
  if (const auto* text = std::get_if<std::string>(&value)) return text_in_python(*text);
  return nb::none();
}

std::vector<ColumnValue> values_of(const nb::list& list) {
  std::vector<ColumnValue> values;
  values.reserve(nb::len(list));
  for (const nb::handle value : list) values.push_back(value_of(value));
  return values;
}

Column column_of(const std::pair<std::string, std::string>& column) {
  return {column.first, parse_column_type(column.second), false};
}

// The vectors lie in `vectors`, which must outlive it.
Items items_of(const HostVectorArray& vectors, const nb::object& ids, const nb::dict& columns,
               const nb::object& payloads) {
  Items items{view_of(vectors, "vectors"), ids_of(ids), {}, {}};
  for (const auto [name, values] : columns) {
    items.columns.push_back({text_of(name), values_of(nb::cast<nb::list>(values))});
  }
  if (payloads.is_none()) return items;
  items.payloads.reserve(nb::len(payloads));
  for (const nb::handle payload : nb::cast<nb::list>(payloads)) {
    const auto bytes = nb::cast<nb::bytes>(payload);
    items.payloads.emplace_back(bytes.c_str(), bytes.size());
  }
  return items;
}

// What the package says of a filter: the expression, its parameters, whether they are a list for each query, ids, a
// mask, and the seconds that the expression may take. The mask's memory is the caller's.
struct GivenItemFilter {
  std::string where;
  nb::list params;
  bool params_of_queries = false;
  nb::object ids;
  std::optional<ConstByteList> mask;
  double seconds = 60;
};

ItemFilter filter_of(const GivenItemFilter& given) {
  ItemFilter filter;
  filter.where = given.where;
  if (given.params_of_queries) {
    for (const nb::handle one : given.params) filter.params_of_queries.push_back(values_of(nb::cast<nb::list>(one)));
  } else {
    filter.params = values_of(given.params);
  }
  if (!given.ids.is_none()) filter.ids = ids_of(given.ids);
  if (given.mask) filter.mask = std::span<const uint8_t>(given.mask->data(), given.mask->size());
  filter.time_limit = std::chrono::milliseconds(static_cast<int64_t>(given.seconds * 1000));
  return filter;
}

// Vectors as 1-D and 2-D arrays that own what was found.
nb::object pair_of(CollectionNeighbors found) {
  const std::vector<std::string> texts = std::move(found.texts);
  auto* const kept = new Neighbors(std::move(found.neighbors));
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<Neighbors*>(pointer); });
  const NeighborsView view = kept->view();
  const size_t shape[] = {static_cast<size_t>(view.queries), static_cast<size_t>(view.k)};
  const auto array = [&](void* data, nb::dlpack::dtype dtype) {
    return nb::ndarray<nb::numpy, nb::ndim<2>>(data, 2, shape, owner, nullptr, dtype).cast();
  };
  return nb::make_tuple(array(view.ids, nb::dtype<int64_t>()), array(view.distances, nb::dtype<float>()),
                        list_of_texts(texts));
}

nb::tuple table_of(ItemTable table) {
  nb::dict columns;
  for (const ColumnValues& column : table.columns) {
    nb::list values;
    for (const ColumnValue& value : column.values) values.append(value_in_python(value));
    columns[text_in_python(column.name)] = values;
  }
  nb::list payloads;
  for (const std::string& payload : table.payloads) payloads.append(nb::bytes(payload.data(), payload.size()));
  nb::object ids = ids_in_python(table.ids);
  return nb::make_tuple(ids, vectors_array(std::move(table.vectors)), columns, payloads);
}

nb::list columns_in_python(const CollectionParams& params) {
  nb::list columns;
  for (const Column& column : params.columns) {
    columns.append(nb::make_tuple(column.name, std::string(name_of(column.type)), column.indexed));
  }
  return columns;
}

nb::dict dict_of(const CollectionInfo& info) {
  nb::list segments;
  for (const CollectionSegment& segment : info.segments) {
    nb::dict one;
    one["file"] = text_in_python(segment.file);
    one["rows"] = segment.rows;
    one["removed"] = segment.removed;
    one["bytes"] = segment.bytes;
    one["index"] = segment.index;
    one["index_file"] = text_in_python(segment.index_file);
    segments.append(one);
  }
  nb::dict result;
  result["path"] = text_in_python(info.path);
  result["version"] = info.version;
  result["size"] = info.size;
  result["newest"] = info.newest;
  result["removed"] = info.removed;
  result["not_indexed"] = info.not_indexed;
  result["bytes_on_disk"] = info.bytes_on_disk;
  result["segments"] = segments;
  return result;
}

// Runs work(resources) for its result.
template <typename Work>
auto run(const CallOptions& options, const Work& work) {
  Call call(options);
  std::optional<decltype(work(call.resources()))> result;
  call.run([&] { result.emplace(work(call.resources())); });
  return std::move(*result);
}

CollectionSearchParams search_params(int64_t k, int64_t probes, int64_t refine, int64_t beam, int64_t width,
                                     double recall, const GivenItemFilter& filter) {
  KnnParams{.k = k}.validate();
  CollectionSearchParams params;
  params.search.k = k;
  params.search.probes = probes;
  params.search.refine = refine;
  params.search.beam = beam;
  params.search.width = width;
  params.search.recall = recall;
  params.filter = filter_of(filter);
  return params;
}

void bind_view(nb::module_& module) {
  nb::class_<GivenItemFilter>(module, "ItemFilter")
      .def("__init__",
           [](GivenItemFilter* self, std::string where, nb::list params, bool params_of_queries, nb::object ids,
              std::optional<ConstByteList> mask, double seconds) {
             new (self) GivenItemFilter{std::move(where), std::move(params), params_of_queries, std::move(ids),
                                        std::move(mask), seconds};
           },
           nb::arg("where"), nb::arg("params"), nb::arg("params_of_queries"), nb::arg("ids").none(),
           nb::arg("mask").noconvert().none(), nb::arg("seconds"),
           nb::sig("def __init__(self, where: str, params: " KITH_PY_VALUES
                   ", params_of_queries: bool, ids: " KITH_PY_ITEM_IDS
                   " | None, mask: numpy.typing.NDArray[numpy.uint8] | None, seconds: float) -> None"));
  nb::class_<CollectionView>(module, "CollectionView")
      .def_prop_ro("version", &CollectionView::version)
      .def_prop_ro("size", &CollectionView::size)
      .def_prop_ro("dimension", [](const CollectionView& self) { return self.params().dimension; })
      .def_prop_ro("metric", [](const CollectionView& self) { return std::string(name_of(self.params().metric)); })
      .def_prop_ro("dtype", [](const CollectionView& self) { return std::string(name_of(self.params().dtype)); })
      .def_prop_ro("text_ids", [](const CollectionView& self) { return self.params().ids == IdType::text; })
      .def_prop_ro("index", [](const CollectionView& self) { return self.params().index; })
      .def_prop_ro("columns", [](const CollectionView& self) { return columns_in_python(self.params()); },
                   nb::sig("def columns(self) -> list[tuple[str, str, bool]]"), "(name, type, indexed)")
      .def("contains_each",
           [](const CollectionView& self, const nb::object& ids) {
             const ItemIds asked = ids_of(ids);
             nb::list there;
             const std::vector<bool> found = [&] {
               const WithoutGil released;
               return self.contains_each(asked);
             }();
             for (const bool one : found) there.append(nb::bool_(one));
             return there;
           },
           nb::arg("ids"), nb::sig("def contains_each(self, ids: " KITH_PY_ITEM_IDS ") -> list[bool]"))
      .def("ids",
           [](const CollectionView& self, const GivenItemFilter& filter, const CallOptions& options) {
             const ItemFilter kept = filter_of(filter);
             return ids_in_python(run(options, [&](const Resources& used) { return self.ids(kept, used); }));
           },
           nb::arg("filter"), nb::arg("options"),
           nb::sig("def ids(self, filter: ItemFilter, options: CallOptions) -> " KITH_PY_ITEM_IDS))
      .def("get",
           [](const CollectionView& self, const nb::object& ids, const CallOptions& options) {
             const ItemIds asked = ids_of(ids);
             return table_of(run(options, [&](const Resources& used) { return self.get(asked, used); }));
           },
           nb::arg("ids"), nb::arg("options"),
           nb::sig("def get(self, ids: " KITH_PY_ITEM_IDS ", options: CallOptions) -> tuple[" KITH_PY_ITEM_IDS
                   ", " KITH_PY_HOST_VECTORS ", dict[str, list[typing.Any]], list[bytes]]"))
      .def("count",
           [](const CollectionView& self, const GivenItemFilter& filter, const CallOptions& options) {
             const ItemFilter kept = filter_of(filter);
             return run(options, [&](const Resources& used) { return self.count(kept, used); });
           },
           nb::arg("filter"), nb::arg("options"))
      .def("search",
           [](const CollectionView& self, const VectorArray& queries, int64_t k, int64_t probes, int64_t refine,
              int64_t beam, int64_t width, double recall, const GivenItemFilter& filter, const CallOptions& options) {
             const MatrixView view = view_of(queries, "queries");
             const CollectionSearchParams params = search_params(k, probes, refine, beam, width, recall, filter);
             return pair_of(run(options, [&](const Resources& used) { return self.search(view, params, used); }));
           },
           nb::arg("queries").noconvert(), nb::arg("k"), nb::arg("probes"), nb::arg("refine"), nb::arg("beam"),
           nb::arg("width"), nb::arg("recall"), nb::arg("filter"), nb::arg("options"),
           nb::sig("def search(self, queries: " KITH_PY_VECTORS
                   ", k: int, probes: int, refine: int, beam: int, width: int, recall: float, filter: ItemFilter, "
                   "options: CallOptions) -> tuple[numpy.typing.NDArray[numpy.int64], "
                   "numpy.typing.NDArray[numpy.float32], list[str]]"),
           "(ids, distances, texts); texts is empty where ids are numbers.")
      .def("range_search",
           [](const CollectionView& self, const VectorArray& queries, float radius, int64_t probes,
              const GivenItemFilter& filter, const CallOptions& options) {
             const MatrixView view = view_of(queries, "queries");
             const CollectionRangeParams params{.radius = radius, .probes = probes, .filter = filter_of(filter)};
             CollectionRange found = run(options, [&](const Resources& used) { return self.range_search(view, params, used); });
             nb::object texts = list_of_texts(found.texts);
             return nb::make_tuple(nb::cast(range_arrays_of(std::move(found.neighbors))), texts);
           },
           nb::arg("queries").noconvert(), nb::arg("radius"), nb::arg("probes"), nb::arg("filter"), nb::arg("options"),
           nb::sig("def range_search(self, queries: " KITH_PY_VECTORS
                   ", radius: float, probes: int, filter: ItemFilter, options: CallOptions) -> tuple[" KITH_PY_RANGE
                   ", list[str]]"));
}

OpenParams open_params(bool writes, double timeout, bool later) {
  return {.mode = writes ? OpenMode::write : OpenMode::read,
          .timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout * 1000)),
          .sync = later ? SyncMode::later : SyncMode::now};
}

Collection create_collection(const nb::bytes& path, int64_t dimension, const std::string& metric,
                             const std::string& dtype, bool text_ids,
                             const std::vector<std::pair<std::string, std::string>>& columns, const std::string& index,
                             double timeout, bool later, const CallOptions& options) {
  CollectionParams params{.dimension = dimension,
                          .metric = parse_metric(metric),
                          .dtype = parse_dtype(dtype),
                          .ids = text_ids ? IdType::text : IdType::integer,
                          .columns = {},
                          .index = index};
  for (const auto& column : columns) params.columns.push_back(column_of(column));
  const OpenParams open = open_params(true, timeout, later);
  return run(options, [&](const Resources& used) { return Collection::create(path_of(path), params, open, used); });
}

Collection open_collection(const nb::bytes& path, bool writes, double timeout, bool later,
                           const CallOptions& options) {
  const OpenParams open = open_params(writes, timeout, later);
  return run(options, [&](const Resources& used) { return Collection::open(path_of(path), open, used); });
}

// Runs a call of a handle that has no result.
template <auto kMethod>
void call_method(Collection& self, const CallOptions& options) {
  Call call(options);
  call.run([&] { (self.*kMethod)(call.resources()); });
}

template <auto kMethod>
void call_with_text(Collection& self, const std::string& text, const CallOptions& options) {
  Call call(options);
  call.run([&] { (self.*kMethod)(text, call.resources()); });
}

template <auto kMethod>
nb::object write_items(Collection& self, const HostVectorArray& vectors, const nb::object& ids, const nb::dict& columns,
                       const nb::object& payloads, const CallOptions& options) {
  const Items items = items_of(vectors, ids, columns, payloads);
  return ids_in_python(run(options, [&](const Resources& used) { return (self.*kMethod)(items, used); }));
}

nb::dict verify(const Collection& self, const CallOptions& options) {
  const VerifyReport report = run(options, [&](const Resources& used) { return self.verify(used); });
  nb::list problems;
  for (const VerifyProblem& one : report.problems) {
    problems.append(nb::make_tuple(text_in_python(one.file), text_in_python(one.reason)));
  }
  nb::dict result;
  result["files"] = report.files;
  result["bytes"] = report.bytes;
  result["items"] = report.items;
  result["problems"] = problems;
  return result;
}

void bind_handle(nb::module_& module) {
  nb::class_<CollectionBatch>(module, "CollectionBatch")
      .def("commit",
           [](CollectionBatch& self, const CallOptions& options) {
             Call call(options);
             call.run([&] { self.commit(call.resources()); });
           },
           nb::arg("options"))
      .def("undo", &CollectionBatch::undo, nb::call_guard<WithoutGil>());
  const char* const items =
      "(self, vectors: " KITH_PY_HOST_VECTORS ", ids: " KITH_PY_ITEM_IDS
      " | None, columns: dict[str, list[typing.Any]], payloads: list[bytes] | None, options: CallOptions) "
      "-> " KITH_PY_ITEM_IDS;
  const std::string add_items = fmt::format("def add{}", items);
  const std::string upsert_items = fmt::format("def upsert{}", items);
  nb::class_<Collection>(module, "Collection")
      .def_prop_ro("path", [](const Collection& self) { return text_in_python(self.path()); },
                   nb::sig("def path(self) -> str"))
      .def_prop_ro("writes", [](const Collection& self) { return self.mode() == OpenMode::write; })
      .def_prop_ro("closed", &Collection::closed)
      .def("view", &Collection::view)
      .def("refresh",
           [](Collection& self, const CallOptions& options) {
             return run(options, [&](const Resources& used) { return self.refresh(used); });
           },
           nb::arg("options"))
      .def("info",
           [](const Collection& self, const CallOptions& options) {
             return dict_of(run(options, [&](const Resources& used) { return self.info(used); }));
           },
           nb::arg("options"), nb::sig("def info(self, options: CallOptions) -> dict[str, typing.Any]"))
      .def("add", &write_items<static_cast<ItemIds (Collection::*)(const Items&, const Resources&)>(&Collection::add)>,
           nb::arg("vectors").noconvert(), nb::arg("ids").none(), nb::arg("columns"), nb::arg("payloads").none(),
           nb::arg("options"), nb::sig(add_items.c_str()))
      .def("upsert",
           &write_items<static_cast<ItemIds (Collection::*)(const Items&, const Resources&)>(&Collection::upsert)>,
           nb::arg("vectors").noconvert(), nb::arg("ids").none(), nb::arg("columns"), nb::arg("payloads").none(),
           nb::arg("options"), nb::sig(upsert_items.c_str()))
      .def("remove_ids",
           [](Collection& self, const nb::object& ids, const CallOptions& options) {
             const ItemIds removed = ids_of(ids);
             return run(options, [&](const Resources& used) { return self.remove(removed, used); });
           },
           nb::arg("ids"), nb::arg("options"),
           nb::sig("def remove_ids(self, ids: " KITH_PY_ITEM_IDS ", options: CallOptions) -> int"))
      .def("remove",
           [](Collection& self, const GivenItemFilter& filter, const CallOptions& options) {
             const ItemFilter removed = filter_of(filter);
             return run(options, [&](const Resources& used) { return self.remove(removed, used); });
           },
           nb::arg("filter"), nb::arg("options"))
      .def("batch", &Collection::batch, nb::keep_alive<0, 1>())
      .def("add_column",
           [](Collection& self, const std::string& name, const std::string& type, const CallOptions& options) {
             Call call(options);
             call.run([&] { self.add_column(column_of({name, type}), call.resources()); });
           },
           nb::arg("name"), nb::arg("type"), nb::arg("options"))
      .def("create_index", &call_with_text<&Collection::create_index>, nb::arg("column"), nb::arg("options"))
      .def("fold", &call_method<&Collection::fold>, nb::arg("options"))
      .def("compact", &call_method<&Collection::compact>, nb::arg("options"))
      .def("reindex", &call_with_text<&Collection::reindex>, nb::arg("factory"), nb::arg("options"))
      .def("verify", &verify, nb::arg("options"),
           nb::sig("def verify(self, options: CallOptions) -> dict[str, typing.Any]"))
      .def("snapshot",
           [](const Collection& self, const nb::bytes& path, const CallOptions& options) {
             Call call(options);
             call.run([&] { self.snapshot(path_of(path), call.resources()); });
           },
           nb::arg("path"), nb::arg("options"))
      .def("close", &call_method<&Collection::close>, nb::arg("options"));
}

}  // namespace

void bind_collection(nb::module_& module) {
  module.attr("has_collections") = true;
  bind_view(module);
  bind_handle(module);
  module.def("create_collection", &create_collection, nb::arg("path"), nb::arg("dimension"), nb::arg("metric"),
             nb::arg("dtype"), nb::arg("text_ids"), nb::arg("columns"), nb::arg("index"), nb::arg("timeout"),
             nb::arg("later"), nb::arg("options"));
  module.def("open_collection", &open_collection, nb::arg("path"), nb::arg("writes"), nb::arg("timeout"),
             nb::arg("later"), nb::arg("options"));
  module.def(
      "column_type_name", [](const std::string& name) { return std::string(name_of(parse_column_type(name))); },
      nb::arg("name"), "Kith's own name of a column's type, given by that or by another.");
  module.def(
      "collection_exists", [](const nb::bytes& path) { return Collection::exists(path_of(path)); }, nb::arg("path"));
}

}  // namespace kith::python
