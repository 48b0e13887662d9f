// Searches with a filter for each query: queries with equal filters are searched together, so that a filter is prepared
// once and its kept rows are scanned once for all of them. Results are byte for byte those of a loop over the queries,
// since no search depends on its batch.
//
// Filters are equal if form and content are. Those in the same memory are equal without a look; others are found by a
// hash and then compared.
// Memory: 16 bytes a query; if there are several groups, the queries and results of a group.
#pragma once

#include <kith/error.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace kith {

// Throws unless there is a filter for each query, and none beside them for all.
void check_filters(std::span<const RowFilter> each, const RowFilter& for_all, int64_t queries);
// Throws unless a filter can be read, is for `rows` rows and lists only these.
void check_filter(const RowFilter& filter, int64_t rows);

struct FilterGroup {
  RowFilter filter;
  std::vector<int64_t> queries;  // ascending
};

// In the order of their first queries.
std::vector<FilterGroup> group_by_filter(std::span<const RowFilter> filters);

[[noreturn]] void throw_for_query(int64_t query, std::string_view what);

// Runs the work that prepares a group's filter; its errors name the filter of the group's first query.
template <typename Work>
decltype(auto) naming_query(const FilterGroup& group, const Work& work) {
  try {
    return work();
  } catch (const InvalidArgument& refused) {
    throw_for_query(group.queries.front(), refused.what());
  }
}

// Calls search(group, queries, out, resources) for every group, `queries` and `out` in host memory, also with resources
// that only count memory. Errors name queries by the caller's numbers.
using GroupSearch =
    std::function<void(const FilterGroup& group, const MatrixView& queries, const NeighborsView& out, const Resources&)>;
void search_filter_groups(const std::vector<FilterGroup>& groups, const MatrixView& queries, const NeighborsView& out,
                          const Resources& resources, const GroupSearch& search);

}  // namespace kith
