// The rows that a filter keeps, checked against the base: their number, bits, and an ascending list.
//
// Memory: rows / 8 bytes for the bits and 4 for each kept row of the list. Each is made on first use: a filter given as
// a list has its list at once, and bits only for searches that scan all rows; a filter given as a mask has its bits at
// once, and a list only if rows are copied.
// A little more for ranks, the number of kept rows before each 4,096th.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/row_filter.hpp>

#include "core/divide.hpp"
#include "core/footprint.hpp"

#include <cstdint>

namespace kith {

class KeptRows {
 public:
  // Throws InvalidArgument if the filter is for another number of rows. With resources that only count, allocates bits,
  // ranks and the list, as if all rows but one were kept.
  KeptRows(const RowFilter& filter, int64_t rows, const Resources& resources);

  // False if every row is kept.
  bool leaves_some_out() const { return count_ < rows_; }
  int64_t count() const { return count_; }

  // Row numbers, ascending.
  const uint32_t* list(const Resources& resources);
  // Bit i % 64 of word i / 64 for row i.
  const uint64_t* bits(const Resources& resources);
  // The same if already made, else null. If a filter drops rows, at least one of them exists.
  const uint32_t* list() const { return list_.as<uint32_t>(); }
  const uint64_t* bits() const { return bits_.as<uint64_t>(); }

  // Counts bits, ranks and list together, though most searches make only one.
  static Footprint footprint(const RowFilter& filter, int64_t rows) {
    if (filter.form() == RowFilter::Form::none) return {};
    const int64_t listed = filter.form() == RowFilter::Form::rows ? filter.size() : rows;
    return array_footprint<uint64_t>(words_for(rows))
        .beside(array_footprint<uint32_t>(ranks_for(rows)))
        .beside(array_footprint<uint32_t>(listed));
  }

  static int64_t most_bytes(const RowFilter& filter, int64_t rows) { return footprint(filter, rows).host; }

  static constexpr int64_t kRankRows = 4096;
  static int64_t words_for(int64_t rows) { return (rows + 63) / 64; }
  static int64_t ranks_for(int64_t rows) { return divide_up(rows, kRankRows); }
  // For each row kRankRows * i: how many are kept before it. Exists once the bits have been made.
  const uint32_t* ranks() const { return ranks_.as<uint32_t>(); }

  // The number of kept rows before a row; the row at a position of the list.
  int64_t count_before(int64_t row) const;
  int64_t row_at(int64_t place) const;

 private:
  void take_bits(const RowFilter& filter, const Resources& resources);
  void take_rows(const RowFilter& filter, const Resources& resources);

  int64_t rows_;
  int64_t count_ = 0;
  HostBuffer list_;
  HostBuffer bits_;
  HostBuffer ranks_;
};

// The number of set bits among the first `count`, from the lowest of the first byte on.
int64_t count_set_bits(const void* bits, int64_t count);

inline bool keeps(const uint64_t* bits, int64_t row) { return bits[row / 64] >> (row % 64) & 1; }

}  // namespace kith
