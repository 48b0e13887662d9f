// Where rows lie in a walked graph: rows with equal codes share a place, and places follow each other by (cell, first
// row), so that what a walk reads lies together: worth a factor of two on a CPU.
//
// Memory: 4 bytes a row and 8 a place; 16 bytes a row while it is made.
#pragma once

#include <kith/resources.hpp>

#include "core/growing_array.hpp"
#include "graph/search/graph/walk_view.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace kith {

class PlaceOrder {
 public:
  // Orders rows of `row_bytes` bytes each, one after the other, that belong to these cells; equal rows belong to one.
  PlaceOrder(const std::byte* rows, int64_t row_bytes, int64_t count, const uint32_t* cells,
             const Resources& resources);
  // The same of rows without cells: places follow each other by their first rows. All threads, whatever the rows.
  static PlaceOrder by_first_row(const std::byte* rows, int64_t row_bytes, int64_t count, const Resources& resources);
  // As a file has it.
  PlaceOrder(HostArray<uint32_t> offsets, HostArray<uint32_t> rows, int64_t places)
      : places_(places), offsets_(std::move(offsets), places + 1), rows_(std::move(rows)) {}

  // `place_of`: of each row, below `places`; every place has a row.
  static PlaceOrder from_places(const HostArray<uint32_t>& place_of, int64_t places, const Resources& resources);

  // With the places of another order of other rows behind, whose first row is behind these. Memory is shared.
  PlaceOrder followed_by(const PlaceOrder& others, const Resources& resources) const;

  int64_t places() const { return places_; }
  int64_t row_count() const { return rows_.size(); }
  const GrowingArray<uint32_t>& offsets() const { return offsets_; }  // as PlaceRows has them
  const GrowingArray<uint32_t>& rows() const { return rows_; }
  uint32_t first_row(int64_t place) const { return rows_[offsets_[place]]; }
  int64_t bytes() const { return offsets_.bytes() + rows_.bytes(); }
  PlaceRows view() const { return {offsets_.data(), rows_.data(), places_, row_count()}; }

 private:
  int64_t places_ = 0;
  GrowingArray<uint32_t> offsets_;
  GrowingArray<uint32_t> rows_;
};

}  // namespace kith
