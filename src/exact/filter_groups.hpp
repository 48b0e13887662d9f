// Searches with a filter for each query: queries whose filters are equal are searched together, so that a filter is
// prepared once and its kept rows are passed over once for all of them. Results are those of a loop over the queries,
// byte for byte, since no search depends on what it is batched with.
//
// Filters are equal by form and content, whatever memory they lie in: those in the same memory are told at once, others
// by a hash, and then compared. Memory: 16 bytes a query; for groups that are not all the queries, the queries and
// results of a group.
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

// That there is a filter for each query, and none beside them for all.
void check_filters(std::span<const RowFilter> each, const RowFilter& for_all, int64_t queries);
// That a filter can be read and is for so many rows, of which it lists none that is not there.
void check_filter(const RowFilter& filter, int64_t rows);

struct FilterGroup {
  RowFilter filter;
  std::vector<int64_t> queries;  // ascending
};

// In the order of their first queries.
std::vector<FilterGroup> group_by_filter(std::span<const RowFilter> filters);

[[noreturn]] void throw_for_query(int64_t query, std::string_view what);

// Does the work that prepares a group's filter; what it refuses is said to be the filter of the group's first query.
template <typename Work>
decltype(auto) naming_query(const FilterGroup& group, const Work& work) {
  try {
    return work();
  } catch (const InvalidArgument& refused) {
    throw_for_query(group.queries.front(), refused.what());
  }
}

// search(group, queries, out, resources) for every group, `queries` and `out` in host memory; with resources that count
// memory too. Queries that it refuses are counted as the caller does.
using GroupSearch =
    std::function<void(const FilterGroup& group, const MatrixView& queries, const NeighborsView& out, const Resources&)>;
void search_filter_groups(const std::vector<FilterGroup>& groups, const MatrixView& queries, const NeighborsView& out,
                          const Resources& resources, const GroupSearch& search);

}  // namespace kith
