// The layout of a matrix file: a row-major matrix of one element type after a header. The rows of *vecs files have a
// header each.
#pragma once

#include <kith/dtype.hpp>
#include <kith/error.hpp>

#include "core/byte_size.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kith {

// What the values in a file can be: vectors have one of Kith's dtypes, ids are i32 or i64.

static_assert(std::endian::native == std::endian::little,
              "the files hold little-endian values and are read as they lie");

enum class ElementType : uint8_t { f32, f16, bf16, u8, i8, i32, i64 };

struct ElementTraits {
  ElementType element;
  std::string_view name;
  std::string_view npy_name;  // numpy's name, as it stands in an .npy header; none for bf16, which numpy lacks
  int64_t bytes;
  std::optional<DType> dtype;  // of vectors; ids have none
};

inline constexpr std::array<ElementTraits, 7> kElementTraits{{
    {ElementType::f32, "f32", "<f4", 4, DType::f32},
    {ElementType::f16, "f16", "<f2", 2, DType::f16},
    {ElementType::bf16, "bf16", "", 2, DType::bf16},
    {ElementType::u8, "u8", "|u1", 1, DType::u8},
    {ElementType::i8, "i8", "|i1", 1, DType::i8},
    {ElementType::i32, "i32", "<i4", 4, std::nullopt},
    {ElementType::i64, "i64", "<i8", 8, std::nullopt},
}};

constexpr const ElementTraits& traits_of(ElementType element) { return kElementTraits[static_cast<size_t>(element)]; }

// The element that holds vectors of a dtype.
constexpr ElementType element_of(DType dtype) {
  for (const ElementTraits& traits : kElementTraits) {
    if (traits.dtype == dtype) return traits.element;
  }
  throw InvalidArgument("no file of vectors holds f64 values; give them as f32");
}

struct FileLayout {
  ElementType element = ElementType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t data_offset = 0;       // the length of the header
  int64_t row_header_bytes = 0;  // before the values of each row

  constexpr int64_t element_bytes() const { return traits_of(element).bytes; }
  // Bytes of the values of a row alone.
  constexpr int64_t row_bytes() const { return saturating_multiply(cols, element_bytes()); }
  // From one row to the next.
  constexpr int64_t row_step() const {
    return row_bytes() > INT64_MAX - row_header_bytes ? INT64_MAX : row_header_bytes + row_bytes();
  }
  // Bytes of the whole file; INT64_MAX if it would overflow.
  constexpr int64_t file_bytes() const {
    const int64_t data = saturating_multiply(rows, row_step());
    return data > INT64_MAX - data_offset ? INT64_MAX : data_offset + data;
  }
  // Whether sizes overflow. Without rows the columns are still limited to what one row could have.
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
