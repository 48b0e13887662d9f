// Segments without an index, searched as one: a Flat index that shares the rows and copies of theirs. Rows that cannot
// be among the k of all segments are left out sooner than by a search of each, which chooses its own k.
//
// Row r of the group is place r - first(i) of its i-th segment. The segments' rows must ascend from each to the next,
// so that equal distances are in the order of add.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/index.hpp>
#include <kith/row_filter.hpp>

#include "collection/part_search.hpp"
#include "collection/state.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kith {

class SegmentGroup {
 public:
  using Flats = std::vector<std::shared_ptr<const Index>>;

  // The parts of a state with these numbers, and the Flat index of each.
  SegmentGroup(std::vector<size_t> parts, Flats flats, const Resources& resources);

  const std::vector<size_t>& parts() const { return parts_; }
  const Flats& flats() const { return flats_; }
  const Index& index() const { return index_; }
  int64_t rows() const { return first_.back(); }
  int64_t first(size_t i) const { return first_[i]; }
  // The place of a row of the group, packed as in found_places.hpp.
  int64_t packed_place(int64_t row) const;

 private:
  std::vector<size_t> parts_;
  Flats flats_;
  std::vector<int64_t> first_;  // one more than parts
  Index index_;
};

// The group of these segments, which the state keeps; null where they are fewer than two.
std::shared_ptr<const SegmentGroup> group_of(const CollectionState& state, std::vector<size_t> parts,
                                             SegmentGroup::Flats flats, const Resources& resources);

// The filters of a group's segments as one.
class GroupFilter {
 public:
  GroupFilter(const SegmentGroup& group, std::span<const PartFilter* const> filters, const Resources& resources);

  int64_t count() const { return count_; }
  RowFilter filter() const;

 private:
  int64_t rows_;
  int64_t count_ = 0;
  HostBuffer bits_;
  HostBuffer list_;
};

}  // namespace kith
