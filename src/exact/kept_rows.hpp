// The rows that a filter keeps, checked against the base: how many, as bits, and as an ascending list.
//
// Memory: rows / 8 bytes for the bits and 4 for each kept row of the list, each made when first asked for (a filter
// given as ids makes the list at once and its bits only for a search that passes over all rows).
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/row_filter.hpp>

#include <cstdint>

namespace kith {

class KeptRows {
 public:
  // InvalidArgument where the filter is not for so many rows.
  KeptRows(const RowFilter& filter, int64_t rows, const Resources& resources);

  // False where every row is kept.
  bool leaves_some_out() const { return count_ < rows_; }
  int64_t count() const { return count_; }

  // Row numbers, ascending.
  const uint32_t* list(const Resources& resources);
  // Bit i % 64 of word i / 64 for row i.
  const uint64_t* bits(const Resources& resources);

 private:
  void take_bits(const RowFilter& filter, const Resources& resources);
  void take_ids(const RowFilter& filter, const Resources& resources);

  int64_t rows_;
  int64_t count_ = 0;
  HostBuffer list_;
  HostBuffer bits_;
};

inline bool keeps(const uint64_t* bits, int64_t row) { return bits[row / 64] >> (row % 64) & 1; }

}  // namespace kith
