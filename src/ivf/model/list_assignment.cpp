#include "ivf/model/list_assignment.hpp"

#include <kith/knn.hpp>

#include "core/host_array.hpp"
#include "core/typed_row.hpp"
#include "exact/search_limit.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kBlockRows = 1 << 16;

}  // namespace

int64_t rank_bytes(int64_t queries, int64_t probes) {
  return std::min(queries, kBlockRows) * probes * static_cast<int64_t>(sizeof(int64_t) + sizeof(float));
}

void rank_lists(Metric metric, const MatrixView& centres, const MatrixView& queries, int64_t probes, int32_t* lists,
                const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  const int64_t block = std::min(kBlockRows, queries.rows());
  if (block == 0) return;
  const HostArray<int64_t> ids(block * probes, "the queries' lists", quiet);
  const HostArray<float> distances(block * probes, "the queries' lists", quiet);
  KnnParams params;
  params.k = probes;
  params.metric = metric;
  params.check_finite = false;
  for (int64_t first = 0; first < queries.rows(); first += block) {
    const int64_t count = std::min(block, queries.rows() - first);
    knn(queries.slice(first, count), centres, {ids.data(), distances.data(), count, probes, {}}, params, quiet);
    std::transform(ids.data(), ids.data() + count * probes, lists + first * probes,
                   [](int64_t id) { return static_cast<int32_t>(id); });
  }
}

void assign_lists(Metric metric, const MatrixView& centres, const MatrixView& rows, int32_t* lists,
                  const Resources& resources) {
  rank_lists(metric, centres, rows, 1, lists, resources);
  // A row that is not finite, where nobody has asked for a check, has no nearest list.
  std::transform(lists, lists + rows.rows(), lists, [](int32_t list) { return std::max(list, 0); });
}

int64_t assign_bytes(Metric metric, int64_t lists, const RowsInfo& rows, const Resources& resources) {
  SearchShape shape;
  shape.queries = std::min(rows.rows, kBlockRows);
  shape.rows = lists;
  shape.cols = rows.cols;
  shape.query_dtype = rows.dtype;
  shape.metric = metric;
  return rank_bytes(rows.rows, 1) +
         smallest_host_bytes(shape, {.k = 1, .check_finite = false}, RowFilter(), resources.with_device(Device::cpu()));
}

void subtract_centres(const MatrixView& centres, const int32_t* lists, const MutableMatrixView& rows) {
  for (int64_t i = 0; i < rows.rows(); ++i) {
    float* const row = typed_row<float>(rows, i);
    const float* const centre = typed_row<float>(centres, lists[i]);
    for (int64_t c = 0; c < rows.cols(); ++c) row[c] -= centre[c];
  }
}

}  // namespace kith
