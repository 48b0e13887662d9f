// Exact search in one call: from arrays, or from files that need not fit in memory.
#include <kith/knn.hpp>
#include <kith/knn_filters.hpp>

#include "array.hpp"
#include "call.hpp"
#include "communicator.hpp"
#include "module.hpp"
#include "neighbors_output.hpp"
#include "plain_array.hpp"
#include "row_filter.hpp"
#include "tensor_place.hpp"
#include "vector_source.hpp"

#include <kith/distributed.hpp>
#include <kith/error.hpp>
#include <kith/one_call.hpp>
#include <kith/vector_file.hpp>

#include <fmt/format.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace kith::python {
namespace {

using Found = std::optional<std::pair<nb::object, nb::object>>;

KnnParams make_params(int64_t k, Metric metric, bool check_finite, const RowFilter& filter) {
  KnnParams params;
  params.k = k;
  params.metric = metric;
  params.check_finite = check_finite;
  params.filter = filter;
  params.validate();
  return params;
}

Found knn_arrays(const VectorArray& queries, const VectorArray& base, int64_t k, const std::string& metric,
                 bool check_finite, const FilterArray* filter, const CallOptions& options, const GivenOutput& out,
                 const nb::object& comm) {
  const MatrixView query_view = view_of(queries, "queries");
  const MatrixView base_view = view_of(base, "base");
  std::optional<GivenFilter> rows;
  const auto make = [&] {
    rows.emplace(filter, base_view.rows());
    if (rows->is_for_each && !comm.is_none()) {
      throw InvalidArgument("filter is a filter for each query; a search by ranks takes one for all queries");
    }
    return make_params(k, parse_metric(metric), check_finite, rows->for_all);
  };
  Call call(options);
  if (!comm.is_none()) {
    std::optional<NeighborsOutput> output;
    run_on_ranks(call, comm, [&](Communicator* ranks) {
      KnnParams params;
      {
        const WithGil gil;  // here, so that an error of one rank reaches the others
        params = make();
        output.emplace(query_view.rows(), k, out, call.resources());
      }
      knn(*ranks, query_view, base_view, output->view(), params, call.resources());
    });
    return output->take();
  }
  const KnnParams params = make();
  check_knn(query_view, base_view, params);
  return as_one_call("the search", call.resources(), [&](const Resources& resources) {
    NeighborsOutput output(query_view.rows(), k, out, resources);
    call.run([&] {
      if (rows->is_for_each) knn(query_view, base_view, rows->each, output.view(), params, resources);
      else knn(query_view, base_view, output.view(), params, resources);
    });
    return output.take();
  });
}

// The same of what most people pass, in less time: numpy's arrays, a plain number and plain names, few results. None
// for all else.
nb::object knn_plain(nb::handle queries, nb::handle base, nb::handle k, nb::handle metric, nb::handle device,
                     nb::handle threads) {
  const PlainRows query_rows(queries);
  const PlainRows base_rows(base);
  const std::optional<int64_t> count = plain_number(k);
  const std::optional<std::string_view> name = plain_text(metric);
  if (!query_rows.view() || !base_rows.view() || base_rows.single() || !count || !name) return nb::none();
  const Metric known = parse_metric(*name);  // before the device: of two wrong names both ways say the same
  const std::optional<PlainSettings> settings = plain_settings(device, threads);
  const MatrixView& query_view = *query_rows.view();
  if (!settings || !PlainNeighbors::suits(query_view.rows(), *count)) return nb::none();
  const KnnParams params = make_params(*count, known, true, {});
  check_knn(query_view, *base_rows.view(), params);
  const PlainNeighbors found(query_view.rows(), *count, query_rows.single());
  Call call(*settings);
  call.run([&] { knn(query_view, *base_rows.view(), found.view(), params, call.resources()); });
  return found.take();
}

// The same of tensors in the memory of one GPU, into fresh ones there.
void knn_tensors(const TensorPlace& queries, const TensorPlace& base, int64_t k, const std::string& metric, int device,
                 int threads, uintptr_t stream, uintptr_t ids, uintptr_t distances) {
  const MatrixView query_view = view_of(queries, device);
  const MatrixView base_view = view_of(base, device);
  const NeighborsView found = neighbors_at(ids, distances, query_view, k);
  const KnnParams params = make_params(k, parse_metric(metric), true, {});
  Call call({std::vector<DeviceParts>{{Device::cuda(device)}}, threads, {}, {}, nb::none(), stream});
  call.run([&] { knn(query_view, base_view, found, params, call.resources()); });
}

// Files that one rank cannot open are an error of all.
Found knn_files_on_ranks(const nb::object& queries, const nb::object& base, int64_t k, const std::string& metric,
                         bool check_finite, const FilterArray* filter, const CallOptions& options,
                         const GivenOutput& out, const nb::object& comm) {
  std::optional<VectorFile> query_file;
  std::optional<VectorFile> base_file;
  std::optional<NeighborsOutput> output;
  Call call(options);
  run_on_ranks(call, comm, [&](Communicator* ranks) {
    KnnParams params;
    {
      const WithGil gil;
      query_file.emplace(vector_file_of(queries));
      base_file.emplace(vector_file_of(base));
      params = make_params(k, parse_metric(metric), check_finite, filter_over(filter, base_file->rows()));
      output.emplace(query_file->rows(), k, out, call.resources());
    }
    knn(*ranks, *query_file, *base_file, output->view(), params, call.resources());
  });
  return output->take();
}

Found knn_files(const nb::object& queries, const nb::object& base, int64_t k, const std::string& metric,
                bool check_finite, const FilterArray* filter, const CallOptions& options, const GivenOutput& out,
                const nb::object& comm) {
  if (!comm.is_none()) return knn_files_on_ranks(queries, base, k, metric, check_finite, filter, options, out, comm);
  const VectorFile query_file = vector_file_of(queries);
  const VectorFile base_file = vector_file_of(base);
  const KnnParams params = make_params(k, parse_metric(metric), check_finite, filter_over(filter, base_file.rows()));
  Call call(options);
  check_knn(query_file, base_file, params);
  return as_one_call("the search", call.resources(), [&](const Resources& resources) {
    NeighborsOutput output(query_file.rows(), k, out, resources);
    const NeighborsView& all = output.view();
    if (!all.space.host_readable())
      throw InvalidArgument("out lies in a GPU's memory; files are searched into host arrays");
    call.run([&] {
      const auto keep = [&](int64_t first_query, const NeighborsView& part) {
        const int64_t values = part.queries * part.k;
        std::copy_n(part.ids, values, all.ids + first_query * all.k);
        std::copy_n(part.distances, values, all.distances + first_query * all.k);
      };
      knn(query_file, base_file, keep, params, resources);
    });
    return output.take();
  });
}

}  // namespace

void bind_knn(nb::module_& module) {
  module.def(
      "check_result_size",
      [](int64_t queries, int64_t k) {
        KnnParams params;
        params.k = k;
        params.validate();
        check_result_size(queries, k);
      },
      nb::arg("queries"), nb::arg("k"), "ValueError where no memory holds so many neighbours.");
  module.def(
      "knn", &knn_arrays, nb::arg("queries").noconvert(), nb::arg("base").noconvert(), nb::arg("k"), nb::arg("metric"),
      nb::arg("check_finite"), nb::arg("filter").none(), nb::arg("options"), nb::arg("out").noconvert().none(),
      nb::arg("comm") = nb::none(),
      nb::sig("def knn(queries: " KITH_PY_VECTORS ", base: " KITH_PY_VECTORS
              ", k: int, metric: str, check_finite: bool, filter: " KITH_PY_FILTER
              ", options: CallOptions, out: " KITH_PY_GIVEN ", comm: object | None = None) -> " KITH_PY_NEIGHBORS),
      "Returns (ids, distances), or None after filling out.");
  module.def("knn_plain", &knn_plain, nb::arg("queries").none(), nb::arg("base").none(), nb::arg("k").none(),
             nb::arg("metric").none(), nb::arg("device").none(), nb::arg("threads").none(),
             nb::sig("def knn_plain(queries: object, base: object, k: object, metric: object, device: object, "
                     "threads: object) -> " KITH_PY_NEIGHBORS),
             "The same, quickly, of numpy's arrays, a number and names; None where they are something else.");
  module.def("knn_tensors", &knn_tensors, nb::arg("queries"), nb::arg("base"), nb::arg("k"), nb::arg("metric"),
             nb::arg("device"), nb::arg("threads"), nb::arg("stream"), nb::arg("ids"), nb::arg("distances"),
             "The same, quickly, of matrices in a GPU's memory: (address, rows, columns, dtype) each, rows one after the "
             "other, and the addresses of int64 ids and float32 distances, queries x k.");
  module.def("knn_files", &knn_files, nb::arg("queries"), nb::arg("base"), nb::arg("k"), nb::arg("metric"),
             nb::arg("check_finite"), nb::arg("filter").none(), nb::arg("options"), nb::arg("out").noconvert().none(),
             nb::arg("comm") = nb::none(),
             nb::sig("def knn_files(queries: object, base: object, k: int, metric: str, check_finite: bool, "
                     "filter: " KITH_PY_FILTER ", options: CallOptions, "
                     "out: " KITH_PY_GIVEN ", comm: object | None = None) -> " KITH_PY_NEIGHBORS),
             "The same between two files of vectors, named by their paths' bytes.");
}

}  // namespace kith::python
