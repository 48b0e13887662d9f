// Exact search by a user's metric on a GPU: the direct engine with keys from the user's kernel. Plan, filters, copies,
// selection, progress and cancellation are those of every exact search.
#include <kith/custom_metric_cuda.hpp>

#include <kith/error.hpp>

#include "exact/exact_search.hpp"
#include "exact/knn_checks.hpp"
#include "exact/knn_output.hpp"

namespace kith::custom {
namespace {

Device device_for(const MatrixView& queries, const MatrixView& base, const Resources& resources) {
  if (resources.device().kind != DeviceKind::automatic) return resources.device();
  for (const MemorySpace& space : {queries.space(), base.space()}) {
    if (!space.host_readable()) return Device::cuda(space.device);
  }
  return Device::cuda(0);
}

}  // namespace

Neighbors knn_cuda(const TileMetric& metric, const MatrixView& queries, const MatrixView& base,
                   const CustomKnnParams& params, const Resources& resources) {
  const Device device = device_for(queries, base, resources);
  if (device.kind == DeviceKind::cpu) {
    throw Unsupported("knn_by_cuda runs on a GPU only; use device cuda or auto, or knn_by of custom_metric.hpp");
  }
  // Its keys are their own unit, the smaller the nearer, as those of l2 are.
  const SearchShape shape = check_knn(RowsInfo(queries), RowsInfo(base), {params.k, Metric::l2});
  Neighbors result(queries.rows(), params.k, resources);
  ViewSource query_rows(queries);
  ViewSource base_rows(base);
  ArrayOutput output(result.view());
  search_knn(shape, {.k = params.k, .given_keys = true, .check_finite = params.check_finite},
             {query_rows, {base_rows}, params.filter, &metric}, output, resources.with_device(device));
  return result;
}

}  // namespace kith::custom
