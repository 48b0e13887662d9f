// Which rows of a base a search may return: a mask, packed bits or a list of row numbers. Without one all rows count.
//
// A filter refers to the caller's host memory, which must live until the call returns. Rows that it leaves out are
// neither searched nor checked, and a filter that keeps few rows makes the search as short as one of those rows.
#pragma once

#include <cstdint>

namespace kith {

class RowFilter {
 public:
  enum class Form : uint8_t { none, mask, bits, rows };

  RowFilter() = default;

  // One byte for each row; the row is kept where it is not 0.
  static RowFilter mask(const uint8_t* keep, int64_t rows) { return {Form::mask, keep, rows}; }
  // One bit for each row: bit i % 8, the lowest first, of byte i / 8 (numpy.packbits(keep, bitorder="little")).
  static RowFilter bits(const uint8_t* bits, int64_t rows) { return {Form::bits, bits, rows}; }
  // The rows to keep, in any order; one that is named twice counts once.
  static RowFilter rows(const int64_t* rows, int64_t count) { return {Form::rows, rows, count}; }

  Form form() const { return form_; }
  const void* data() const { return data_; }
  int64_t size() const { return size_; }  // rows of a mask or of bits, or how many are listed

 private:
  RowFilter(Form form, const void* data, int64_t size) : form_(form), data_(data), size_(size) {}

  Form form_ = Form::none;
  const void* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace kith
