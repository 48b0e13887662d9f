#include "ivf/model/list_assignment.hpp"

#include <kith/knn.hpp>

#include "core/host_array.hpp"
#include "core/typed_row.hpp"
#include "exact/search_footprint.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kBlockRows = 1 << 16;

// What an exact search of the centres finds for a block of queries.
struct RankedBlock {
  RankedBlock(int64_t queries, int64_t probes, const Resources& resources)
      : rows(std::min(kBlockRows, queries)),
        ids(rows * probes, "the queries' lists", resources),
        distances(rows * probes, "the queries' lists", resources) {}

  int64_t rows;
  HostArray<int64_t> ids;
  HostArray<float> distances;
};

}  // namespace

Footprint rank_footprint(int64_t queries, int64_t probes, const Resources& resources) {
  return footprint_of<RankedBlock>(resources, queries, probes);
}

void rank_lists(Metric metric, const MatrixView& centres, const MatrixView& queries, int64_t probes, int32_t* lists,
                const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  if (queries.rows() == 0) return;
  const RankedBlock block(queries.rows(), probes, quiet);
  KnnParams params;
  params.k = probes;
  params.metric = metric;
  params.check_finite = false;
  for (int64_t first = 0; first < queries.rows(); first += block.rows) {
    const int64_t count = std::min(block.rows, queries.rows() - first);
    knn(queries.slice(first, count), centres, {block.ids.data(), block.distances.data(), count, probes, {}}, params,
        quiet);
    std::transform(block.ids.data(), block.ids.data() + count * probes, lists + first * probes,
                   [](int64_t id) { return static_cast<int32_t>(id); });
  }
}

void assign_lists(Metric metric, const MatrixView& centres, const MatrixView& rows, int32_t* lists,
                  const Resources& resources) {
  rank_lists(metric, centres, rows, 1, lists, resources);
  // A row that is not finite, where nobody has asked for a check, has no nearest list.
  std::transform(lists, lists + rows.rows(), lists, [](int32_t list) { return std::max(list, 0); });
}

Footprint assign_footprint(Metric metric, int64_t lists, const RowsInfo& rows, const Resources& resources) {
  SearchShape shape;
  shape.queries = std::min(rows.rows, kBlockRows);
  shape.rows = lists;
  shape.cols = rows.cols;
  shape.query_dtype = rows.dtype;
  shape.metric = metric;
  return rank_footprint(rows.rows, 1, resources)
      .beside(search_footprint(shape, {.k = 1, .check_finite = false}, RowFilter(), resources));
}

}  // namespace kith
