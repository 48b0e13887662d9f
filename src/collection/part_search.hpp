// Searches of one part of a version: by its index, or exactly.
#pragma once

#include <kith/collection.hpp>

#include "collection/kept_places.hpp"
#include "collection/state.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kith {

// The filter of one part, and what it refers to.
class PartFilter {
 public:
  // The places that `kept` has, all of which live; without it all that live.
  PartFilter(const StatePart& part, const PlaceBits* kept, const Resources& resources);

  int64_t count() const { return count_; }
  bool few() const { return are_few(count_, rows_); }
  RowFilter filter() const;
  // Host memory that one takes at most, beside the filter that it is made of.
  static int64_t most_bytes(const StatePart& part);

 private:
  int64_t rows_;
  int64_t count_ = 0;
  const uint8_t* bits_ = nullptr;
  HostBuffer inverted_;
  HostBuffer list_;
};

// The k nearest places, by its index if it has one and many places are kept; exactly where that found fewer than there are.
Neighbors search_part(const CollectionState& state, const StatePart& part, const MatrixView& queries, int64_t k,
                      const PartFilter& filter, const SearchParams& wished, const Resources& resources);
// The same with a filter for each query: those of a group share one. `group_of`: the number of each query's group.
Neighbors search_part(const CollectionState& state, const StatePart& part, const MatrixView& queries, int64_t k,
                      std::span<const KeptPlaces* const> groups, std::span<const size_t> group_of,
                      const SearchParams& wished, const Resources& resources);

// The queries of these numbers, in host memory.
MatrixBuffer some_queries(const MatrixView& queries, std::span<const int64_t> which, const Resources& resources);

}  // namespace kith
