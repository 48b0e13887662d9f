// A sorted list of packed neighbours from its front to its end, without one row: the neighbours of a row of the base
// among the other rows. Of k + 1 that are listed at least k others come, whether or not the row itself, which its
// duplicates may precede, is among them; then padding.
#pragma once

#include "core/ordered_key.hpp"

#include <cstdint>

namespace kith {

struct OtherNeighbors {
  static constexpr uint32_t kNoOne = 0xFFFFFFFFu;  // excludes no row

  const uint64_t* list;
  int64_t size;
  uint32_t itself;
  int64_t at = 0;

  uint64_t next() {
    if (at < size && row_of(list[at]) == itself) ++at;
    return at < size ? list[at++] : kPadding;
  }
};

}  // namespace kith
