// Codes that no step of ICM changes, as far as they are known: for each row of a block its best ones, and some that
// earlier rounds of the search ended with. A step depends on the row and its codes alone, and all of these cost at least
// as much as the best: a round that comes to one of them is over, and has found nothing.
//
// On SIFT with 7 codebooks two rounds in five come back to the best codes, and another one in four to others.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace kith {

class SettledCodes {
 public:
  SettledCodes(int64_t books, int64_t block_rows, const Resources& resources)
      : books_(books),
        marks_(block_rows * kHeld, "a block of codes", resources),
        codes_(block_rows * kHeld * books, "a block of codes", resources),
        next_(block_rows, "a block of codes", resources) {}

  static int64_t bytes_for(int64_t books, int64_t block_rows) {
    return block_rows * (kHeld * (array_bytes<uint32_t>(1) + books) + array_bytes<uint8_t>(1));
  }

  // A number that codes are compared by first: the sum of those of its codes.
  static uint32_t mark_of(int64_t book, uint8_t code) {
    return static_cast<uint32_t>(code) * (0x9E3779B1u * static_cast<uint32_t>(2 * book + 1));
  }
  uint32_t mark_of(const uint8_t* codes) const {
    uint32_t mark = 0;
    for (int64_t k = 0; k < books_; ++k) mark += mark_of(k, codes[k]);
    return mark;
  }

  void clear() {
    std::fill(marks_.begin(), marks_.end(), kNobodys);
    std::fill(codes_.begin(), codes_.end(), uint8_t{0});
    std::fill(next_.begin(), next_.end(), uint8_t{0});
  }

  bool holds(int64_t row, const uint8_t* codes, uint32_t mark) const {
    const uint32_t* const marks = marks_.data() + row * kHeld;
    bool any = false;
    for (int64_t i = 0; i < kHeld; ++i) any |= marks[i] == mark;
    for (int64_t i = 0; any && i < kHeld; ++i) {
      if (marks[i] == mark && std::memcmp(place(row, i), codes, static_cast<size_t>(books_)) == 0) return true;
    }
    return false;
  }

  // The oldest gives way.
  void add(int64_t row, const uint8_t* codes, uint32_t mark) {
    put(row, 1 + next_[row], codes, mark);
    next_[row] = static_cast<uint8_t>((next_[row] + 1) % (kHeld - 1));
  }

  // The best codes of a row are others now, whether they are settled or not; those before are kept like any.
  void add_best(int64_t row, const uint8_t* codes, uint32_t mark, bool settled) {
    const uint32_t before = marks_[row * kHeld];
    if (before != kNobodys && before != mark) add(row, place(row, 0), before);
    if (settled) {
      put(row, 0, codes, mark);
    } else {
      marks_[row * kHeld] = kNobodys;
      std::fill_n(place(row, 0), books_, uint8_t{0});
    }
  }

 private:
  static constexpr int64_t kHeld = 8;
  static constexpr uint32_t kNobodys = 1;  // with codes of 0, whose mark is 0

  uint8_t* place(int64_t row, int64_t i) const { return codes_.data() + (row * kHeld + i) * books_; }
  void put(int64_t row, int64_t i, const uint8_t* codes, uint32_t mark) {
    marks_[row * kHeld + i] = mark;
    std::copy_n(codes, books_, place(row, i));
  }

  const int64_t books_;
  HostArray<uint32_t> marks_;  // rows x kHeld: the best codes' first
  HostArray<uint8_t> codes_;
  HostArray<uint8_t> next_;    // of the others, that which is replaced next
};

}  // namespace kith
