#include "graph/build/cells_on_disk/control_search.hpp"

#include <kith/matrix_buffer.hpp>

#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "graph/lists/control_rows.hpp"
#include "rows/row_sample.hpp"
#include "rows/threaded_rows.hpp"

#include <vector>

namespace kith {

Neighbors search_file(const MatrixView& queries, const VectorFile& file, Metric metric, int64_t k,
                      const Resources& resources) {
  const VectorFile x = read_by_threads(file, resources);
  const SearchShape shape = check_knn(RowsInfo(queries), RowsInfo(x), {k, metric});
  const SearchRequest request{.k = k, .check_finite = false};
  const auto least = [&] {
    const Footprint found = footprint_of<Neighbors>(resources, queries.rows(), k);
    return found.beside({x.memory_bytes()}).beside(search_footprint(shape, request, RowFilter(), resources));
  };
  return within_limits("the control rows", resources, least, [&] {
    Neighbors found(queries.rows(), k, resources);
    const ReadMemory memory = x.reserve_memory(resources);
    ViewSource query_rows(queries);
    FileSource base_rows(x);
    search_knn(shape, request, {query_rows, base_rows, RowFilter()}, found.view(), resources);
    return found;
  });
}

Neighbors search_control_rows(const VectorFile& x, const ControlSearch& search, const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  const std::vector<uint32_t> rows = ControlRows::draw(x.rows(), search.seed, quiet);
  MatrixBuffer queries(x.dtype(), static_cast<int64_t>(rows.size()), x.cols(), "the control rows", quiet);
  const int64_t wanted = ControlRows::wanted(x.rows(), search.k);
  if (counts_only(resources)) {
    count_call(quiet, [&](const Resources& counting) {
      (void)search_file(queries.view(), x, search.metric, wanted, counting);
    });
    return {};
  }
  {
    const ReadMemory memory = x.reserve_memory(quiet);
    FileSource source(x);
    gather(source, rows, queries.mutable_view(), quiet);
  }
  return search_file(queries.view(), x, search.metric, wanted, resources);
}

}  // namespace kith
