// The rows of a base that a search may return: a mask, packed bits or a list of row numbers; an empty filter means all.
//
// A filter refers to the caller's host memory, which must live until the call returns. Other rows are neither searched
// nor checked, so a filter that keeps few rows makes the search as fast as one of those rows alone.
#pragma once

#include <cstdint>

namespace kith {

class RowFilter {
 public:
  enum class Form : uint8_t { none, mask, bits, rows };

  RowFilter() = default;

  // One byte per row; not 0: the row is kept.
  static RowFilter mask(const uint8_t* keep, int64_t rows) { return {Form::mask, keep, rows}; }
  // One bit per row: for row i bit i % 8, the lowest first, of byte i / 8 (numpy.packbits(keep, bitorder="little")).
  static RowFilter bits(const uint8_t* bits, int64_t rows) { return {Form::bits, bits, rows}; }
  // The rows to keep, in any order; duplicates are allowed.
  static RowFilter rows(const int64_t* rows, int64_t count) { return {Form::rows, rows, count}; }

  Form form() const { return form_; }
  const void* data() const { return data_; }
  int64_t size() const { return size_; }  // rows of a mask or of bits, or entries of a list

 private:
  RowFilter(Form form, const void* data, int64_t size) : form_(form), data_(data), size_(size) {}

  Form form_ = Form::none;
  const void* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace kith
