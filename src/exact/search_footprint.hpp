// What exact searches need at least, beside their results: their filters and their smallest plans.
#pragma once

#include <kith/range_search.hpp>
#include <kith/refused_row.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>

#include "core/within_limits.hpp"
#include "exact/search_task.hpp"
#include "rows/row_source.hpp"

namespace kith {

// Memory of a search on the device where its data is, or that `resources` ask for; else on the CPU.
Footprint search_footprint(const SearchShape& shape, const SearchRequest& request, const RowFilter& filter,
                           const Resources& resources);

// The same of a range search whose results stay in memory: before it nobody knows how many there are.
Footprint range_footprint(const SearchShape& shape, const SearchRequest& request, const RowFilter& filter,
                          const Resources& resources);

// Searches in files, `least` beside what these take themselves: search(queries, base) goes over them.
template <typename Least, typename Search>
void search_files(const VectorFile& queries, const VectorFile& base, const Resources& resources, const Least& least,
                  const Search& search) {
  const auto all = [&] { return Footprint{queries.memory_bytes() + base.memory_bytes()}.beside(least()); };
  within_limits("the search", resources, all, [&] {
    const ReadMemory query_memory = queries.reserve_memory(resources);
    const ReadMemory base_memory = base.reserve_memory(resources);
    FileSource query_rows(queries);
    FileSource base_rows(base);
    naming_files({{"query", queries}, {"base", base}}, [&] { search(query_rows, base_rows); });
  });
}

}  // namespace kith
