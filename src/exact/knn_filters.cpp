#include <kith/knn_filters.hpp>

#include "core/within_limits.hpp"
#include "exact/filter_groups.hpp"
#include "exact/search_checks.hpp"
#include "rows/narrowed_rows.hpp"

#include <vector>

namespace kith {

Neighbors knn(const MatrixView& queries, const MatrixView& base, std::span<const RowFilter> filters,
              const KnnParams& params, const Resources& resources) {
  (void)check_knn(RowsInfo(queries), RowsInfo(base), params);
  return within_limits("the search", resources, [&](const Resources& used) {
    Neighbors result(queries.rows(), params.k, used);
    knn(queries, base, filters, result.view(), params, used);
    return result;
  });
}

void knn(const MatrixView& queries, const MatrixView& base, std::span<const RowFilter> filters,
         const NeighborsView& out, const KnnParams& params, const Resources& resources) {
  (void)check_knn(RowsInfo(queries), RowsInfo(base), params);
  check_output(out, queries.rows(), params.k);
  check_filters(filters, params.filter, queries.rows());
  const std::vector<FilterGroup> groups = group_by_filter(filters);
  for (const FilterGroup& group : groups) naming_query(group, [&] { check_filter(group.filter, base.rows()); });
  // The base is narrowed once, not for each group. Warnings were logged for all queries.
  const auto search = [&](const MatrixView& some, const MatrixView& all, const Resources& used) {
    warn_of_short_base(some.rows(), all.rows(), params.k, used);
    const auto search_group = [&](const FilterGroup& group, const MatrixView& rows, const NeighborsView& found,
                                  const Resources& each) {
      KnnParams own = params;
      own.filter = group.filter;
      call_or_count(each.with_log({}), [&](const Resources& quiet) { knn(rows, all, found, own, quiet); });
    };
    within_limits("the search", used, [&](const Resources& limited) {
      search_filter_groups(groups, some, out, limited, search_group);
    });
  };
  with_narrowed("the search", {"queries", queries, "base", base}, params.metric, resources, search);
}

}  // namespace kith
