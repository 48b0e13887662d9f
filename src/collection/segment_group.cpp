#include "collection/segment_group.hpp"

#include "collection/found_places.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kith {
namespace {

Index joined(const SegmentGroup::Flats& flats, const Resources& resources) {
  Index all = flats.front()->clone(resources);
  for (size_t i = 1; i < flats.size(); ++i) all.merge(*flats[i], {.shift_ids = true}, resources);
  return all;
}

// Sets the bits of `count` rows from `first` on; `bits` of them, or all where it is null.
void put_bits(uint8_t* to, int64_t first, const uint8_t* bits, int64_t count) {
  const auto set = [&](int64_t row) { to[row / 8] = static_cast<uint8_t>(to[row / 8] | 1U << (row % 8)); };
  int64_t i = 0;
  const int shift = static_cast<int>(first % 8);
  for (; i + 8 <= count; i += 8) {
    const unsigned byte = bits == nullptr ? 0xffU : bits[i / 8];
    uint8_t* const at = to + (first + i) / 8;
    at[0] = static_cast<uint8_t>(at[0] | byte << shift);
    if (shift > 0) at[1] = static_cast<uint8_t>(at[1] | byte >> (8 - shift));
  }
  for (; i < count; ++i) {
    if (bits == nullptr || (bits[i / 8] >> (i % 8) & 1) != 0) set(first + i);
  }
}

}  // namespace

SegmentGroup::SegmentGroup(std::vector<size_t> parts, Flats flats, const Resources& resources)
    : parts_(std::move(parts)), flats_(std::move(flats)), first_{0}, index_(joined(flats_, resources)) {
  for (const std::shared_ptr<const Index>& flat : flats_) first_.push_back(first_.back() + flat->size());
}

int64_t SegmentGroup::packed_place(int64_t row) const {
  const auto i = static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), row) - first_.begin()) - 1;
  return packed(parts_[i], row - first_[i]);
}

std::shared_ptr<const SegmentGroup> group_of(const CollectionState& state, std::vector<size_t> parts,
                                             SegmentGroup::Flats flats, const Resources& resources) {
  if (parts.size() < 2) return nullptr;
  if (auto known = state.kept_group(); known != nullptr && known->parts() == parts && known->flats() == flats) return known;
  auto made = std::make_shared<const SegmentGroup>(std::move(parts), std::move(flats), resources);
  state.keep_group(made);
  return made;
}

GroupFilter::GroupFilter(const SegmentGroup& group, std::span<const PartFilter* const> filters, const Resources& resources)
    : rows_(group.rows()) {
  for (const PartFilter* filter : filters) count_ += filter->count();
  if (count_ == rows_) return;
  const auto is_list = [](const PartFilter* filter) {
    return filter->count() == 0 || filter->filter().form() == RowFilter::Form::rows;
  };
  if (std::all_of(filters.begin(), filters.end(), is_list)) {
    list_ = HostBuffer(count_ * static_cast<int64_t>(sizeof(int64_t)), "the rows that a filter keeps", resources);
    auto* next = list_.as<int64_t>();
    for (size_t i = 0; i < filters.size(); ++i) {
      const RowFilter of_part = filters[i]->filter();  // of no rows: without a form
      const auto* const rows = static_cast<const int64_t*>(of_part.data());
      for (int64_t r = 0; r < of_part.size(); ++r) *next++ = group.first(i) + rows[r];
    }
    return;
  }
  bits_ = HostBuffer((rows_ + 7) / 8, "the rows that a filter keeps", resources);
  std::memset(bits_.data(), 0, static_cast<size_t>(bits_.bytes()));
  for (size_t i = 0; i < filters.size(); ++i) {
    if (filters[i]->count() == 0) continue;
    const RowFilter of_part = filters[i]->filter();
    if (of_part.form() != RowFilter::Form::rows) {
      const auto* const bits = static_cast<const uint8_t*>(of_part.data());
      put_bits(bits_.as<uint8_t>(), group.first(i), of_part.form() == RowFilter::Form::none ? nullptr : bits,
               group.first(i + 1) - group.first(i));
      continue;
    }
    const auto* const rows = static_cast<const int64_t*>(of_part.data());
    for (int64_t r = 0; r < of_part.size(); ++r) {
      const int64_t row = group.first(i) + rows[r];
      bits_.as<uint8_t>()[row / 8] = static_cast<uint8_t>(bits_.as<uint8_t>()[row / 8] | 1U << (row % 8));
    }
  }
}

RowFilter GroupFilter::filter() const {
  if (count_ == rows_) return {};
  if (list_.bytes() > 0) return RowFilter::rows(list_.as<int64_t>(), count_);
  return RowFilter::bits(bits_.as<uint8_t>(), rows_);
}

}  // namespace kith
