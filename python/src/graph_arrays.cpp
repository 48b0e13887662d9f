#include "graph_arrays.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

namespace kith::python {

KnnGraph GivenGraph::graph() const {
  NeighborsView view;
  if (const auto* on_device = std::get_if<DeviceArray>(&ids)) {
    view.queries = on_device->shape().at(0);
    view.k = on_device->shape().at(1);
    view.space = on_device->space();
    view.ids = on_device->writable<int64_t>("ids", view.queries, view.k);
    view.distances = std::get<DeviceArray>(distances).writable<float>("distances", view.queries, view.k);
  } else {
    const auto& host = std::get<ConstIdArray>(ids);
    view.queries = static_cast<int64_t>(host.shape(0));
    view.k = static_cast<int64_t>(host.shape(1));
    view.ids = const_cast<int64_t*>(host.data());  // which KnnGraph never writes to
    view.distances = const_cast<float*>(std::get<ConstDistanceArray>(distances).data());
  }
  return KnnGraph::unchecked(view, nullptr, parse_metric(metric));
}

nb::tuple csr_arrays(CsrMatrix matrix) {
  const int64_t rows = matrix.rows();
  const int64_t size = matrix.size();
  auto* kept = new CsrMatrix(std::move(matrix));
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<CsrMatrix*>(pointer); });
  const auto list = [&](void* data, int64_t length, nb::dlpack::dtype dtype) {
    const size_t shape[] = {static_cast<size_t>(length)};
    return nb::ndarray<nb::numpy, nb::ndim<1>>(data, 1, shape, owner, nullptr, dtype).cast();
  };
  return nb::make_tuple(list(kept->offsets(), rows + 1, nb::dtype<int64_t>()),
                        list(kept->columns(), size, nb::dtype<int64_t>()),
                        list(kept->values(), size, nb::dtype<float>()));
}

nb::dict report_dict(const GraphReport& report) {
  nb::dict result;
  result["method"] = report.method;
  nb::dict parameters;
  for (const GraphParameter& parameter : report.parameters) {
    parameters[parameter.name.c_str()] = nb::cast(parameter.value);
  }
  result["parameters"] = parameters;
  const auto estimate = [&](double GraphRecall::* member) {
    return report.recall ? nb::cast((*report.recall).*member) : nb::none();
  };
  result["recall"] = estimate(&GraphRecall::recall);
  result["recall_at_10"] = estimate(&GraphRecall::recall_at_10);
  result["standard_error"] = estimate(&GraphRecall::standard_error);
  result["reached"] = report.reached;
  result["forecast"] =
      report.forecast ? nb::cast(nb::make_tuple(report.forecast->probes, report.forecast->comparisons)) : nb::none();
  nb::list rounds;
  for (const GraphRound& round : report.rounds) {
    nb::dict told;
    told["recall"] = round.recall ? nb::cast(*round.recall) : nb::none();
    told["phi"] = round.phi;
    told["updates"] = round.updates;
    told["comparisons"] = round.comparisons;
    told["seconds"] = round.seconds;
    rounds.append(told);
  }
  result["rounds"] = rounds;
  result["seconds"] = report.seconds;
  result["peak_bytes"] = report.peak_host_bytes;
  result["peak_device_bytes"] = report.peak_device_bytes;
  return result;
}

nb::tuple arrays_of(const KnnGraph& graph) {
  auto* kept = new KnnGraph(graph);
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<KnnGraph*>(pointer); });
  const size_t shape[] = {static_cast<size_t>(kept->rows()), static_cast<size_t>(kept->k())};
  auto* const ids = const_cast<int64_t*>(kept->ids());
  auto* const distances = const_cast<float*>(kept->distances());
  return nb::make_tuple(
      nb::ndarray<nb::numpy, nb::ndim<2>>(ids, 2, shape, owner, nullptr, nb::dtype<int64_t>()).cast(),
      nb::ndarray<nb::numpy, nb::ndim<2>>(distances, 2, shape, owner, nullptr, nb::dtype<float>()).cast());
}

}  // namespace kith::python
