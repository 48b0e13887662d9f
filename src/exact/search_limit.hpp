// Bytes of exact searches on the host, for rooms that still add them up themselves.
#pragma once

#include "core/named_limit.hpp"
#include "exact/search_footprint.hpp"

#include <cstdint>

namespace kith {

inline int64_t smallest_host_bytes(const SearchShape& shape, const SearchWish& wish, const RowFilter& filter,
                                   const Resources& resources) {
  return search_footprint(shape, wish, filter, resources).host;
}

constexpr int64_t neighbors_bytes(int64_t queries, int64_t k) { return queries * k * 12; }

}  // namespace kith
