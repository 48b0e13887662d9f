// Rows of a file that some joins need, gathered in memory: the numbers of their rows become places, in the same order.
//
// A bit for each row of the file says whether it is here; with the bits counted before every word, a row's place is
// found by counting a few more. Rows that lie near each other are one read. A file that is not read by several threads
// at once (compressed, HDF5) is read by one, from front to back.
//
// Memory: 3/16 of a byte for each row of the file, and the gathered rows.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

#include "core/host_array.hpp"

#include <bit>
#include <cstdint>

namespace kith {

inline constexpr int64_t kMostGathered = int64_t{1} << 24;  // rows at a time

class GatheredRows {
 public:
  // With room for `most` rows. The file must outlive it.
  GatheredRows(const VectorFile& x, int64_t most, const Resources& resources);
  // Where rows are gathered.
  MatrixView room() const { return rows_.view(); }

  // Forgets all rows.
  void clear();
  // Adds rows to be gathered, kNobody left out. Adds none, and returns false, if there is no room for all of them.
  bool add(const uint32_t* rows, int64_t count);
  // Reads them.
  void load();

  // After load().
  MatrixView view() const { return rows_.view().slice(0, count_); }
  uint32_t place_of(uint32_t row) const {
    const uint64_t below = bits_[row / 64] & ((uint64_t{1} << row % 64) - 1);
    return before_[row / 64] + static_cast<uint32_t>(std::popcount(below));
  }
  uint32_t row_at(uint32_t place) const { return listed_[place]; }

 private:
  struct Window {  // of the file, read together
    std::byte* data;
    int64_t rows;
  };

  bool has(uint32_t row) const { return (bits_[row / 64] >> (row % 64) & 1) != 0; }
  bool are_few() const;
  void count_places();
  void read(int64_t first, int64_t end, const Window& window);

  const VectorFile& x_;
  const bool parallel_;
  const Resources resources_;
  const int64_t most_;
  int64_t count_ = 0;
  HostArray<uint64_t> bits_;
  HostArray<uint32_t> before_;  // rows before each word, or each that holds one
  HostArray<uint32_t> listed_;
  MatrixBuffer rows_;
  HostArray<std::byte> windows_;  // of each thread
};

}  // namespace kith
