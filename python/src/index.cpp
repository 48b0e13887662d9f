// The library's Index, as the package's class of that name uses it, with the arrays that it borrows.
//
// A borrowed array may lead back to its index (an attribute of it, for instance). Python's collector finds such cycles
// through the two slots below.
#include <kith/index.hpp>
#include <kith/index_graph.hpp>
#include <kith/index_work.hpp>

#include "array.hpp"
#include "call.hpp"
#include "communicator.hpp"
#include "gil.hpp"
#include "graph_arrays.hpp"
#include "module.hpp"
#include "neighbors_output.hpp"
#include "plain_array.hpp"
#include "range_output.hpp"
#include "row_filter.hpp"
#include "tensor_place.hpp"
#include "vector_source.hpp"

#include <kith/distributed.hpp>
#include <kith/faiss_file.hpp>
#include <kith/hnswlib_file.hpp>
#include <kith/one_call.hpp>
#include <kith/vector_file.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kith::python {
namespace {

#define KITH_PY_IDS "numpy.typing.NDArray[numpy.int64]"

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

BorrowingIndex make_index(const std::string& factory, const std::string& metric, bool check_finite, bool prepare,
                          int64_t expected_rows, uint64_t seed) {
  return {Index(factory, {.metric = parse_metric(metric),
                          .check_finite = check_finite,
                          .prepare = prepare,
                          .expected_rows = expected_rows,
                          .seed = seed}),
          {}};
}

std::string path_of(const nb::bytes& path) { return {path.c_str(), path.size()}; }

// None gives no ids, which an empty array is not.
VectorView<const int64_t> ids_of(const std::optional<ConstIdList>& ids) {
  static const int64_t none = 0;
  if (!ids) return {};
  return {ids->size() == 0 ? &none : ids->data(), static_cast<int64_t>(ids->size()), {}};
}

void train(BorrowingIndex& self, const VectorArray& x, const CallOptions& options) {
  const MatrixView view = view_of(x, "x");
  Call call(options);
  call.run([&] { self.index.train(view, call.resources()); });
}

void train_file(BorrowingIndex& self, const nb::object& source, const CallOptions& options) {
  const VectorFile file = vector_file_of(source);
  Call call(options);
  call.run([&] { self.index.train(file, call.resources()); });
}

// The vectors to refine with, in a file, or none.
std::optional<VectorFile> originals_at(const std::optional<nb::bytes>& path) {
  return path ? std::optional<VectorFile>(path_of(*path)) : std::nullopt;
}

void add(BorrowingIndex& self, const nb::object& x, const std::optional<ConstIdList>& ids, bool borrow,
         const CallOptions& options, const nb::object& comm) {
  const auto rows = nb::cast<VectorArray>(x, false);
  const MatrixView view = view_of(rows, "x");
  Call call(options);
  if (!comm.is_none()) {
    return run_on_ranks(call, comm, [&](Communicator* ranks) {
      kith::add(self.index, *ranks, view, ids_of(ids), call.resources());
    });
  }
  if (!borrow) {
    call.run([&] { self.index.add(view, ids_of(ids), Ownership::copy, call.resources()); });
    return;
  }
  // An exception, Ctrl-C for one, may come after the rows are in: then the index reads them, and they must stay.
  const auto kept = self.borrowed.insert(self.borrowed.end(), x);
  bool added = false;
  try {
    call.run([&] {
      self.index.add(view, ids_of(ids), Ownership::borrow, call.resources());
      added = true;
    });
  } catch (...) {
    if (!added) self.borrowed.erase(kept);
    throw;
  }
}

void add_from(BorrowingIndex& self, const VectorArray& x, const std::optional<ConstIdList>& ids,
              const GivenGraph& start, const CallOptions& options) {
  const MatrixView view = view_of(x, "x");
  const KnnGraph graph = start.graph();
  Call call(options);
  call.run([&] { self.index.add(view, ids_of(ids), graph, call.resources()); });
}

void add_file(BorrowingIndex& self, const nb::object& source, const std::optional<ConstIdList>& ids,
              const CallOptions& options, const nb::object& comm) {
  Call call(options);
  std::optional<VectorFile> file;
  if (comm.is_none()) file.emplace(vector_file_of(source));
  run_on_ranks(call, comm, [&](Communicator* ranks) {
    if (ranks == nullptr) return self.index.add(*file, ids_of(ids), call.resources());
    {
      const WithGil gil;  // here, so that an error of one rank reaches the others
      file.emplace(vector_file_of(source));
    }
    kith::add(self.index, *ranks, *file, ids_of(ids), call.resources());
  });
}

int64_t replace(BorrowingIndex& self, const VectorArray& x, const ConstIdList& ids, const CallOptions& options) {
  const MatrixView view = view_of(x, "x");
  Call call(options);
  int64_t replaced = 0;
  call.run([&] { replaced = self.index.replace(view, ids_of(ids), call.resources()); });
  return replaced;
}

int64_t replace_file(BorrowingIndex& self, const nb::object& source, const ConstIdList& ids,
                     const CallOptions& options) {
  const VectorFile file = vector_file_of(source);
  Call call(options);
  int64_t replaced = 0;
  call.run([&] { replaced = self.index.replace(file, ids_of(ids), call.resources()); });
  return replaced;
}

nb::tuple own_graph(const BorrowingIndex& self, const VectorArray& x, int64_t k, int64_t probes, int64_t refine,
                    const std::optional<nb::bytes>& refine_from, uint64_t seed, const CallOptions& options,
                    const GivenOutput& out) {
  const MatrixView view = view_of(x, "x");
  const std::optional<VectorFile> originals = originals_at(refine_from);
  const IndexGraphParams params{.k = k,
                                .probes = probes,
                                .refine = refine,
                                .refine_from = originals ? &*originals : nullptr,
                                .seed = seed};
  params.validate();
  return made_graph(
      out, view.rows(), k, options,
      [&](const Resources& resources) { return knn_graph(self.index, view, params, resources); },
      [&](const NeighborsView& arrays, const Resources& resources) {
        return knn_graph(self.index, view, arrays, params, resources);
      });
}

int64_t remove(BorrowingIndex& self, const ConstIdList& ids, const CallOptions& options) {
  Call call(options);
  const VectorView<const int64_t> view = ids_of(ids);
  int64_t removed = 0;
  call.run([&] { removed = self.index.remove(view, call.resources()); });
  return removed;
}

void compact(BorrowingIndex& self, const CallOptions& options) {
  Call call(options);
  call.run([&] { self.index.compact(call.resources()); });
}

nb::object reconstruct(const BorrowingIndex& self, const ConstIdList& ids, const CallOptions& options) {
  Call call(options);
  const VectorView<const int64_t> view = ids_of(ids);
  const int64_t cols = self.index.dimension();
  const bool wide = !self.index.offset().empty();  // float32 would lose the offset again
  return as_one_call("the reconstructed vectors", call.resources(), [&](const Resources& resources) {
    MatrixBuffer vectors(wide ? DType::f64 : DType::f32, view.size, cols, "the reconstructed vectors", resources);
    call.run([&] { self.index.reconstruct(view, vectors.mutable_view(), resources); });
    return vectors_array(std::move(vectors));
  });
}

// Keeps alive the arrays that the other index borrows: from before the merge is visible, and also if an exception comes
// after it.
void merge(BorrowingIndex& self, const BorrowingIndex& other, bool shift_ids, const CallOptions& options) {
  Call call(options);
  const std::list<nb::object> theirs = other.borrowed;
  const auto kept = self.borrowed.insert(self.borrowed.end(), theirs.begin(), theirs.end());
  bool merged = false;
  try {
    call.run([&] {
      self.index.merge(other.index, {.shift_ids = shift_ids}, call.resources());
      merged = true;
    });
  } catch (...) {
    for (auto at = kept; !merged && at != self.borrowed.end() && !theirs.empty();) {
      const bool own = std::any_of(theirs.begin(), theirs.end(), [&](const nb::object& one) { return one.is(*at); });
      if (!own) break;  // borrowed by an add since then
      at = self.borrowed.erase(at);
    }
    throw;
  }
}

// A number that does not fit is refused as others are that do not divide the parts.
int copies_of(int64_t copies) {
  return static_cast<int>(std::clamp<int64_t>(copies, -1, std::numeric_limits<int>::max()));
}

BorrowingIndex to_devices(const BorrowingIndex& self, const std::string& device, int64_t copies,
                          const CallOptions& options) {
  Call call(options);
  std::optional<Index> copy;
  call.run([&] { copy = self.index.to({parse_devices(device), copies_of(copies)}, call.resources()); });
  return {std::move(*copy), self.borrowed};
}

BorrowingIndex clone(const BorrowingIndex& self, const CallOptions& options) {
  Call call(options);
  std::optional<Index> copy;
  call.run([&] { copy = self.index.clone(call.resources()); });
  return {std::move(*copy), self.borrowed};
}

// Beside its numbers a search may have the path of the vectors to refine with.
struct SearchWords {
  int64_t k;
  int64_t probes;
  int64_t refine;
  std::optional<nb::bytes> refine_from;
  int64_t beam;
  int64_t width;
  double recall;
  bool filter_strict;
};

std::optional<std::pair<nb::object, nb::object>> search(const BorrowingIndex& self, const VectorArray& queries,
                                                        const SearchWords& words, const FilterArray* filter,
                                                        const CallOptions& options, const GivenOutput& out,
                                                        const nb::object& comm) {
  const int64_t k = words.k;
  KnnParams params;
  params.k = k;
  params.validate();
  const MatrixView view = view_of(queries, "queries");
  const std::optional<VectorFile> originals = originals_at(words.refine_from);
  const GivenFilter rows(filter, self.index.size());
  const SearchParams wanted{.k = k,
                            .filter = rows.for_all,
                            .filters = rows.each,
                            .filter_strict = words.filter_strict,
                            .probes = words.probes,
                            .refine = words.refine,
                            .refine_from = originals ? &*originals : nullptr,
                            .beam = words.beam,
                            .width = words.width,
                            .recall = words.recall};
  check_result_size(view.rows(), k);
  Call call(options);
  if (!comm.is_none()) {
    NeighborsOutput output(view.rows(), k, out, call.resources());
    run_on_ranks(call, comm, [&](Communicator* ranks) {
      kith::search(self.index, *ranks, view, output.view(), wanted, call.resources());
    });
    return output.take();
  }
  return as_one_call("the search", call.resources(), [&](const Resources& resources) {
    NeighborsOutput output(view.rows(), k, out, resources);
    call.run([&] { self.index.search(view, output.view(), wanted, resources); });
    return output.take();
  });
}

// The same of what most people pass, in less time: an array of numpy's, a plain number, few results, or arrays for them.
// None for all else.
nb::object search_plain(const BorrowingIndex& self, nb::handle queries, nb::handle k, nb::handle device,
                        nb::handle threads, nb::handle probes, nb::handle refine, nb::handle beam, nb::handle out) {
  const PlainRows rows(queries);
  const std::optional<int64_t> count = plain_number(k);
  const auto or_default = [](nb::handle given) { return given.is_none() ? std::optional<int64_t>(0) : plain_number(given); };
  const std::optional<int64_t> lists = or_default(probes);
  const std::optional<int64_t> times = or_default(refine);
  const std::optional<int64_t> wide = or_default(beam);
  if (!rows.view() || !count || !lists || !times || !wide) return nb::none();
  // What is out of range is refused by the other way, in its words.
  if ((*lists < 1 && !probes.is_none()) || (*times < 1 && !refine.is_none())) return nb::none();
  if (*wide < 1 && !beam.is_none()) return nb::none();
  const std::optional<PlainSettings> settings = plain_settings(device, threads);
  if (!settings || !PlainNeighbors::suits(rows.view()->rows(), *count)) return nb::none();
  KnnParams params;
  params.k = *count;
  params.validate();
  const SearchParams wanted{.k = *count, .probes = *lists, .refine = *times, .beam = *wide};
  const auto search_into = [&](const NeighborsView& found) {
    Call call(*settings);
    call.run([&] { self.index.search(*rows.view(), found, wanted, call.resources()); });
  };
  if (!out.is_none()) {
    if (!self.borrowed.empty()) return nb::none();  // which must not be written to
    const std::optional<NeighborsView> given = given_neighbors(out, *rows.view(), *count, rows.single());
    if (!given) return nb::none();
    search_into(*given);
    return nb::borrow(out);
  }
  const PlainNeighbors found(rows.view()->rows(), *count, rows.single());
  search_into(found.view());
  return found.take();
}

// The same of a tensor in a GPU's memory, into fresh ones there.
void search_tensors(const BorrowingIndex& self, const TensorPlace& queries, int64_t k, int device, int threads,
                    uintptr_t stream, uintptr_t ids, uintptr_t distances, int64_t probes, int64_t refine) {
  const MatrixView view = view_of(queries, device);
  Call call({std::vector<DeviceParts>{{Device::automatic()}}, threads, {}, {}, nb::none(), stream});
  const NeighborsView found = neighbors_at(ids, distances, view, k);
  const SearchParams wanted{.k = k, .probes = probes, .refine = refine};
  call.run([&] { self.index.search(view, found, wanted, call.resources()); });
}

std::optional<RangeArrays> range_search(const BorrowingIndex& self, const VectorArray& queries, float radius,
                                        int64_t probes, const FilterArray* filter, bool filter_strict,
                                        const CallOptions& options, const RangeRoom& room) {
  const MatrixView view = view_of(queries, "queries");
  RangeSearchParams wanted{.radius = radius, .filter = filter_over(filter, self.index.size())};
  wanted.probes = probes;
  wanted.filter_strict = filter_strict;
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

nb::dict dict_of(const TunedSearch& one) {
  nb::dict parameters;
  const std::pair<const char*, int64_t> all[] = {
      {"beam", one.beam}, {"width", one.width}, {"probes", one.probes}, {"refine", one.refine}};
  for (const auto& [name, value] : all) {
    if (value > 0) parameters[name] = value;
  }
  nb::dict result;
  result["parameters"] = parameters;
  result["recall"] = one.recall;
  result["standard_error"] = one.standard_error;
  result["compared"] = one.compared;
  result["seconds"] = one.seconds;
  return result;
}

nb::list list_of(const TuneTable& table) {
  nb::list searches;
  for (const TunedSearch& one : table.searches) searches.append(dict_of(one));
  return searches;
}

nb::dict info(const BorrowingIndex& self) {
  const IndexInfo info = self.index.info();
  nb::dict parts;
  for (const auto& [name, bytes] : info.parts) parts[name.c_str()] = bytes;
  nb::dict result;
  result["factory"] = info.factory;
  result["metric"] = std::string(name_of(info.metric));
  result["trained"] = info.trained;
  result["size"] = info.size;
  result["dead"] = info.dead;
  result["dimension"] = info.dimension;
  result["dtype"] = std::string(name_of(info.dtype));
  result["lists"] = info.lists;
  result["imbalance"] = info.imbalance;
  result["longest_list"] = info.longest;
  result["filled_lists"] = info.filled;
  result["code_bytes"] = info.code_bytes;
  result["degree"] = info.degree;
  result["unlinked"] = info.unlinked;
  result["walk_bits"] = info.walk_bits;
  result["clipped"] = info.clipped;
  result["lost"] = info.lost;
  result["beam"] = info.beam;
  nb::dict recalls;
  for (const auto& [beam, recall] : info.recalls) recalls[nb::int_(beam)] = recall;
  result["recalls"] = recalls;
  result["tuned"] = list_of(info.tuned);
  result["host_bytes"] = info.bytes.host;
  result["device_bytes"] = info.bytes.device;
  result["parts"] = parts;
  return result;
}

nb::tuple tune(BorrowingIndex& self, const VectorArray& queries, int64_t k, double recall, int64_t batch,
               const CallOptions& options) {
  const MatrixView view = view_of(queries, "queries");
  Call call(options);
  TuneReport report;
  call.run([&] { report = self.index.tune(view, {.k = k, .recall = recall, .batch = batch}, call.resources()); });
  return nb::make_tuple(dict_of(report.chosen), report.reached, list_of(report.table));
}

void save(const BorrowingIndex& self, const nb::bytes& path, const CallOptions& options) {
  Call call(options);
  call.run([&] { self.index.save(path_of(path), call.resources()); });
}

void save_added(const BorrowingIndex& self, const nb::object& source, const std::optional<ConstIdList>& ids,
                const nb::bytes& path, const nb::bytes& work, bool keep, const nb::object& train,
                const CallOptions& options) {
  const VectorFile file = vector_file_of(source);
  std::optional<VectorFile> trained_on;
  if (!train.is_none()) trained_on.emplace(vector_file_of(train));
  const IndexWork steps{path_of(work), keep, trained_on ? &*trained_on : nullptr};
  Call call(options);
  call.run([&] { kith::save_added(self.index, file, ids_of(ids), path_of(path), steps, call.resources()); });
}

std::vector<std::string> paths_of(const nb::list& paths) {
  std::vector<std::string> all;
  for (const nb::handle path : paths) all.push_back(path_of(nb::cast<nb::bytes>(path)));
  return all;
}

// `paths`: one, which may be a pattern, or a list of them.
BorrowingIndex load(const nb::object& paths, bool mmap, bool lists_on_disk, bool verify, const CallOptions& options) {
  const LoadParams params{mmap, lists_on_disk ? ListsPlace::disk : ListsPlace::host, verify};
  const bool several = nb::isinstance<nb::list>(paths);
  const std::vector<std::string> files = several ? paths_of(nb::cast<nb::list>(paths)) : std::vector<std::string>();
  const std::string path = several ? std::string() : path_of(nb::cast<nb::bytes>(paths));
  Call call(options);
  std::optional<Index> index;
  call.run([&] {
    index = several ? Index::load(files, params, call.resources()) : Index::load(path, params, call.resources());
  });
  return {std::move(*index), {}};
}

void merge_files(const nb::list& paths, const nb::bytes& out, bool shift_ids, const CallOptions& options) {
  const std::vector<std::string> files = paths_of(paths);
  Call call(options);
  call.run([&] { Index::merge_files(files, path_of(out), {.shift_ids = shift_ids}, call.resources()); });
}

BorrowingIndex read_faiss(const nb::bytes& path, const CallOptions& options) {
  Call call(options);
  std::optional<Index> index;
  call.run([&] { index = read_faiss_index(path_of(path), call.resources()); });
  return {std::move(*index), {}};
}

void write_faiss(const BorrowingIndex& self, const nb::bytes& path, const CallOptions& options) {
  Call call(options);
  call.run([&] { write_faiss_index(self.index, path_of(path), call.resources()); });
}

BorrowingIndex read_hnsw(const nb::bytes& path, const std::string& metric, const CallOptions& options) {
  Call call(options);
  std::optional<Index> index;
  call.run([&] { index = read_hnswlib(path_of(path), parse_metric(metric), call.resources()); });
  return {std::move(*index), {}};
}

void write_hnsw(const BorrowingIndex& self, const nb::bytes& path, const CallOptions& options) {
  Call call(options);
  call.run([&] { write_hnswlib(self.index, path_of(path), call.resources()); });
}

nb::object ids(const BorrowingIndex& self, const CallOptions& options) {
  Call call(options);
  auto* const kept = new HostBuffer();
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<HostBuffer*>(pointer); });
  call.run([&] { *kept = self.index.ids(call.resources()); });
  const size_t shape[] = {static_cast<size_t>(kept->bytes()) / sizeof(int64_t)};
  return nb::ndarray<nb::numpy, nb::ndim<1>>(kept->as<int64_t>(), 1, shape, owner, nullptr, nb::dtype<int64_t>())
      .cast();
}

nb::tuple edges(const BorrowingIndex& self, const CallOptions& options) {
  Call call(options);
  auto* const kept = new IndexEdges();
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<IndexEdges*>(pointer); });
  call.run([&] { *kept = self.index.edges(call.resources()); });
  const auto list = [&](int64_t* data, int64_t length) {
    const size_t shape[] = {static_cast<size_t>(length)};
    return nb::ndarray<nb::numpy, nb::ndim<1>>(data, 1, shape, owner, nullptr, nb::dtype<int64_t>()).cast();
  };
  return nb::make_tuple(list(kept->offsets(), kept->rows() + 1), list(kept->columns(), kept->size()));
}

nb::list borrowed(const BorrowingIndex& self) {
  nb::list arrays;
  for (const nb::object& array : self.borrowed) arrays.append(array);
  return arrays;
}

}  // namespace

void bind_index(nb::module_& module) {
  nb::class_<BorrowingIndex>(module, "Index", nb::type_slots(index_slots))
      .def(nb::new_(&make_index), nb::arg("factory"), nb::arg("metric"), nb::arg("check_finite"), nb::arg("prepare"),
           nb::arg("expected_rows"), nb::arg("seed"))
      .def("train", &train, nb::arg("x").noconvert(), nb::arg("options"),
           nb::sig("def train(self, x: " KITH_PY_VECTORS ", options: CallOptions) -> None"))
      .def("train_file", &train_file, nb::arg("path"), nb::arg("options"))
      .def("add", &add, nb::arg("x").noconvert(), nb::arg("ids").noconvert().none(), nb::arg("borrow"),
           nb::arg("options"), nb::arg("comm") = nb::none(),
           nb::sig("def add(self, x: " KITH_PY_VECTORS ", ids: " KITH_PY_IDS
                   " | None, borrow: bool, options: CallOptions, comm: object | None = None) -> None"),
           "With borrow x is read in place and kept alive; it must not change.")
      .def("add_from", &add_from, nb::arg("x").noconvert(), nb::arg("ids").noconvert().none(), nb::arg("start"),
           nb::arg("options"),
           nb::sig("def add_from(self, x: " KITH_PY_VECTORS ", ids: " KITH_PY_IDS
                   " | None, start: GivenGraph, options: CallOptions) -> None"))
      .def("add_file", &add_file, nb::arg("path"), nb::arg("ids").noconvert().none(), nb::arg("options"),
           nb::arg("comm") = nb::none(),
           nb::sig("def add_file(self, path: object, ids: " KITH_PY_IDS
                   " | None, options: CallOptions, comm: object | None = None) -> None"))
      .def("replace", &replace, nb::arg("x").noconvert(), nb::arg("ids").noconvert(), nb::arg("options"),
           nb::sig("def replace(self, x: " KITH_PY_VECTORS ", ids: " KITH_PY_IDS ", options: CallOptions) -> int"),
           "How many were replaced.")
      .def("replace_file", &replace_file, nb::arg("path"), nb::arg("ids").noconvert(), nb::arg("options"),
           nb::sig("def replace_file(self, path: object, ids: " KITH_PY_IDS ", options: CallOptions) -> int"))
      .def("remove", &remove, nb::arg("ids").noconvert(), nb::arg("options"),
           nb::sig("def remove(self, ids: " KITH_PY_IDS ", options: CallOptions) -> int"), "How many there were.")
      .def("compact", &compact, nb::arg("options"))
      .def("reconstruct", &reconstruct, nb::arg("ids").noconvert(), nb::arg("options"),
           nb::sig("def reconstruct(self, ids: " KITH_PY_IDS ", options: CallOptions) -> " KITH_PY_HOST_VECTORS),
           "float64 where the index subtracts an offset, else float32.")
      .def("merge", &merge, nb::arg("other"), nb::arg("shift_ids"), nb::arg("options"))
      .def("to", &to_devices, nb::arg("device"), nb::arg("copies"), nb::arg("options"),
           "A new index that shares the vectors, and the arrays that are read in place.")
      .def("clone", &clone, nb::arg("options"))
      .def(
          "knn_graph", &own_graph, nb::arg("x").noconvert(), nb::arg("k"), nb::arg("probes"), nb::arg("refine"),
          nb::arg("refine_from").none(), nb::arg("seed"), nb::arg("options"), nb::arg("out").noconvert().none(),
          nb::sig("def knn_graph(self, x: " KITH_PY_VECTORS ", k: int, probes: int, refine: int, refine_from: bytes | "
                  "None, seed: int, options: CallOptions, out: " KITH_PY_GIVEN ") -> " KITH_PY_MADE_GRAPH),
          "The graph of the vectors that the index holds: (ids, distances), or None after filling out, and the report.")
      .def(
          "search",
          [](const BorrowingIndex& self, const VectorArray& queries, int64_t k, int64_t probes, int64_t refine,
             const std::optional<nb::bytes>& refine_from, int64_t beam, int64_t width, double recall,
             const FilterArray* filter, bool filter_strict, const CallOptions& options, const GivenOutput& out,
             const nb::object& comm) {
            return search(self, queries, {k, probes, refine, refine_from, beam, width, recall, filter_strict}, filter,
                          options, out, comm);
          },
          nb::arg("queries").noconvert(), nb::arg("k"), nb::arg("probes"), nb::arg("refine"),
          nb::arg("refine_from").none(), nb::arg("beam"), nb::arg("width"), nb::arg("recall"), nb::arg("filter").none(),
          nb::arg("filter_strict"), nb::arg("options"), nb::arg("out").noconvert().none(),
          nb::arg("comm") = nb::none(),
          nb::sig(
              "def search(self, queries: " KITH_PY_VECTORS
              ", k: int, probes: int, refine: int, refine_from: bytes | None, beam: int, width: int, recall: float, "
              "filter: " KITH_PY_FILTER ", filter_strict: bool, options: CallOptions, out: " KITH_PY_GIVEN
              ", comm: object | None = None) -> " KITH_PY_NEIGHBORS),
          "Returns (ids, distances), or None after filling out.")
      .def("search_plain", &search_plain, nb::arg("queries").none(), nb::arg("k").none(), nb::arg("device").none(),
           nb::arg("threads").none(), nb::arg("probes").none(), nb::arg("refine").none(), nb::arg("beam").none(),
           nb::arg("out").none(),
           nb::sig("def search_plain(self, queries: object, k: object, device: object, threads: object, "
                   "probes: object, refine: object, beam: object, out: object) -> " KITH_PY_NEIGHBORS),
           "The same, quickly, of arrays of numpy's and a number; None where they are something else.")
      .def("search_tensors", &search_tensors, nb::arg("queries"), nb::arg("k"), nb::arg("device"), nb::arg("threads"),
           nb::arg("stream"), nb::arg("ids"), nb::arg("distances"), nb::arg("probes"), nb::arg("refine"),
           "The same, quickly, of a matrix in a GPU's memory: (address, rows, columns, dtype), rows one after the "
           "other, "
           "and the addresses of int64 ids and float32 distances, queries x k. probes and refine: 0 for the defaults.")
      .def("range_search", &range_search, nb::arg("queries").noconvert(), nb::arg("radius"), nb::arg("probes"),
           nb::arg("filter").none(), nb::arg("filter_strict"), nb::arg("options"), nb::arg("room").none(),
           nb::sig("def range_search(self, queries: " KITH_PY_VECTORS
                   ", radius: float, probes: int, filter: " KITH_PY_FILTER
                   ", filter_strict: bool, options: CallOptions, "
                   "room: " KITH_PY_ROOM ") -> " KITH_PY_RANGE " | None"))
      .def("tune", &tune, nb::arg("queries").noconvert(), nb::arg("k"), nb::arg("recall"), nb::arg("batch"),
           nb::arg("options"),
           nb::sig("def tune(self, queries: " KITH_PY_VECTORS
                   ", k: int, recall: float, batch: int, options: CallOptions) "
                   "-> tuple[dict[str, typing.Any], bool, list[dict[str, typing.Any]]]"),
           "The chosen search, whether it has the recall, and all that were measured.")
      .def("save", &save, nb::arg("path"), nb::arg("options"))
      .def("save_added", &save_added, nb::arg("source"), nb::arg("ids").noconvert().none(), nb::arg("path"),
           nb::arg("work"), nb::arg("keep"), nb::arg("train").none(), nb::arg("options"),
           nb::sig("def save_added(self, source: object, ids: " KITH_PY_IDS
                   " | None, path: bytes, work: bytes, keep: bool, train: object | None, options: CallOptions) -> None"))
      .def("write_faiss", &write_faiss, nb::arg("path"), nb::arg("options"))
      .def("write_hnswlib", &write_hnsw, nb::arg("path"), nb::arg("options"))
      .def("edges", &edges, nb::arg("options"),
           nb::sig("def edges(self, options: CallOptions) -> "
                   "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]"),
           "(offsets, rows)")
      .def("ids", &ids, nb::arg("options"), nb::sig("def ids(self, options: CallOptions) -> " KITH_PY_IDS),
           "In the order of add.")
      .def("contains", [](const BorrowingIndex& self, int64_t id) { return self.index.contains(id); }, nb::arg("id"))
      .def("info", &info, nb::sig("def info(self) -> dict[str, typing.Any]"))
      .def_prop_ro("borrowed", &borrowed, nb::sig("def borrowed(self) -> list[" KITH_PY_VECTORS "]"),
                   "The arrays that are read in place.")
      .def("__len__", [](const BorrowingIndex& self) { return self.index.size(); })
      .def_prop_ro("trained", [](const BorrowingIndex& self) { return self.index.trained(); })
      .def_prop_ro(
          "place", [](const BorrowingIndex& self) { return name_of(self.index.device()); },
          "The device in whose memory the vectors lie; auto before there are any.")
      .def_prop_ro("subtracts", [](const BorrowingIndex& self) { return !self.index.offset().empty(); })
      .def_prop_ro("dimension", [](const BorrowingIndex& self) { return self.index.dimension(); })
      .def_prop_ro("factory", [](const BorrowingIndex& self) { return self.index.factory(); })
      .def_prop_ro("metric",
                   [](const BorrowingIndex& self) { return std::string(name_of(self.index.params().metric)); })
      .def_prop_ro("check_finite", [](const BorrowingIndex& self) { return self.index.params().check_finite; })
      .def_prop_ro("prepare", [](const BorrowingIndex& self) { return self.index.params().prepare; })
      .def_prop_ro("expected_rows", [](const BorrowingIndex& self) { return self.index.params().expected_rows; })
      .def_prop_ro("seed", [](const BorrowingIndex& self) { return self.index.params().seed; });
  module.def("load_index", &load, nb::arg("paths"), nb::arg("mmap"), nb::arg("lists_on_disk"), nb::arg("verify"),
             nb::arg("options"),
             nb::sig("def load_index(paths: bytes | list[bytes], mmap: bool, lists_on_disk: bool, verify: bool, "
                     "options: CallOptions) -> Index"),
             "The index of a .kith file, or of several.");
  module.def("merge_index_files", &merge_files, nb::arg("paths"), nb::arg("out"), nb::arg("shift_ids"),
             nb::arg("options"),
             nb::sig("def merge_index_files(paths: list[bytes], out: bytes, shift_ids: bool, options: CallOptions) -> "
                     "None"));
  module.def("read_faiss", &read_faiss, nb::arg("path"), nb::arg("options"));
  module.def("read_hnswlib", &read_hnsw, nb::arg("path"), nb::arg("metric"), nb::arg("options"));
}

}  // namespace kith::python
