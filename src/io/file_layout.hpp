// Where the values of a file lie: a row-major matrix of one element type behind a header. All headers say no more.
// The rows of *vecs files have a header each.
#pragma once

#include "core/byte_size.hpp"
#include "io/element_type.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace kith {

struct FileLayout {
  ElementType element = ElementType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t data_offset = 0;       // the length of the header
  int64_t row_header_bytes = 0;  // before the values of each row

  constexpr int64_t element_bytes() const { return traits_of(element).bytes; }
  // Of the values of a row alone.
  constexpr int64_t row_bytes() const { return saturating_multiply(cols, element_bytes()); }
  // From one row to the next.
  constexpr int64_t row_step() const {
    return row_bytes() > INT64_MAX - row_header_bytes ? INT64_MAX : row_header_bytes + row_bytes();
  }
  // Of the whole file; INT64_MAX where it would overflow.
  constexpr int64_t file_bytes() const {
    const int64_t data = saturating_multiply(rows, row_step());
    return data > INT64_MAX - data_offset ? INT64_MAX : data_offset + data;
  }
  // Whether any file can be like this. Without rows the columns are still held to what one row could be.
  constexpr bool overflows() const {
    return saturating_multiply(std::max<int64_t>(rows, 1), row_step()) >= INT64_MAX - data_offset;
  }
};

// "1000 x 128 f32"
std::string describe(const FileLayout& layout);

// Refuses, as CorruptFile at `offset`, a shape from a header that no file can have: more bytes than can be counted, or
// rows without columns.
void check_shape(const FileLayout& layout, const std::string& path, int64_t offset);

// Refuses, as CorruptFile, a file whose `size` is not what its header promises.
void check_size(const FileLayout& layout, int64_t size, const std::string& path);

}  // namespace kith
