// The host memory limit with which a whole search would do: its results, its filter, and the smallest plan.
//
// Results and filters take their memory before anything is planned. Where the limit refuses one of them, the search is
// planned after all, for a limit of nothing: the plan's OutOfMemory says what it needs at least.
#pragma once

#include <kith/export.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/view.hpp>

#include "core/named_limit.hpp"
#include "exact/search_task.hpp"

#include <cstdint>

namespace kith {

// What a search takes on the host at least, beside its results.
int64_t smallest_host_bytes(const SearchShape& shape, const SearchWish& wish, const RowFilter& filter,
                            const Resources& resources);

struct LimitedSearch {
  const SearchShape& shape;
  const SearchWish& wish;
  const RowFilter& filter;
  int64_t beside = 0;  // bytes on the host that the work takes for results, or for reading files
};

// Does the work; an OutOfMemory of the host limit leaves it as a NamedLimit.
template <typename Work>
decltype(auto) naming_the_limit(const LimitedSearch& search, const Resources& resources, const Work& work) {
  const auto needed = [&] {
    return search.beside + smallest_host_bytes(search.shape, search.wish, search.filter, resources);
  };
  return naming_host_limit(needed, resources, work);
}

// Of so many neighbours.
constexpr int64_t neighbors_bytes(int64_t queries, int64_t k) { return queries * k * 12; }

// What pairwise distances take on the CPU, with or without the matrix itself.
int64_t pairwise_host_bytes(const MatrixView& x, const MatrixView& y, bool with_result, const Resources& resources);

// For who keeps all that a range search in files finds, and had no room for it: counts it by another search, once what
// was kept is gone, and throws a NamedLimit.
[[noreturn]] KITH_EXPORT void throw_kept_range_limit(const VectorFile& queries, const VectorFile& base,
                                                     const RangeParams& params, const Resources& resources);

}  // namespace kith
