// The rows that a filter keeps, checked against the base: how many, as bits, and as an ascending list.
//
// Memory: rows / 8 bytes for the bits and 4 for each kept row of the list, each made when first asked for: a filter
// given as a list has it at once and its bits only for a search that passes over all rows, one given as a mask the
// bits at once and the list only where the rows themselves are copied. A little more for ranks: how many rows are kept
// before each 4,096th.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/row_filter.hpp>

#include "core/divide.hpp"
#include "core/footprint.hpp"

#include <cstdint>

namespace kith {

class KeptRows {
 public:
  // InvalidArgument where the filter is not for so many rows. Where memory is only counted, bits, ranks and list are
  // allocated together, as if all rows but one were kept.
  KeptRows(const RowFilter& filter, int64_t rows, const Resources& resources);

  // False where every row is kept.
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

  // How many are kept before a row; the number of the kept row at a place in the list.
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

// How many of the first `count` bits are set, from the lowest of the first byte on.
int64_t count_set_bits(const void* bits, int64_t count);

inline bool keeps(const uint64_t* bits, int64_t row) { return bits[row / 64] >> (row % 64) & 1; }

}  // namespace kith
