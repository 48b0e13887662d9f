// The header of an .npy array that is not a file of vectors for Kith: any numbers, in C or Fortran order.
#pragma once

#include <kith/dtype.hpp>
#include <kith/error.hpp>

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

namespace kith::cli {

struct NpyArray {
  char kind = 'f';       // numpy's letter: f, i, u, b
  int64_t bytes = 8;     // of a value
  bool swapped = false;  // big-endian
  bool by_columns = false;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t offset = 0;  // of the first value

  // The dtype of its converted rows: its own if Kith has it, otherwise f32.
  DType dtype() const {
    if (!swapped && kind == 'f' && bytes == 2) return DType::f16;
    if (kind == 'u' && bytes == 1) return DType::u8;
    if (kind == 'i' && bytes == 1) return DType::i8;
    return DType::f32;
  }
  bool is_kept() const { return dtype() != DType::f32 || (kind == 'f' && bytes == 4 && !swapped); }

  double value(const std::byte* at) const {
    std::byte raw[8] = {};
    for (int64_t i = 0; i < bytes; ++i) raw[i] = at[swapped ? bytes - 1 - i : i];
    const auto read = [&]<typename T>(T number) {
      std::memcpy(&number, raw, sizeof(number));
      return static_cast<double>(number);
    };
    if (kind == 'f') return bytes == 8 ? read(double{}) : read(float{});
    if (kind == 'i') {
      return bytes == 8 ? read(int64_t{}) : bytes == 4 ? read(int32_t{}) : bytes == 2 ? read(int16_t{}) : read(int8_t{});
    }
    return bytes == 8 ? read(uint64_t{}) : bytes == 4 ? read(uint32_t{}) : bytes == 2 ? read(uint16_t{}) : read(uint8_t{});
  }
};

inline constexpr int64_t kNpyStart = 10;  // magic, version, and the header's length where that has two bytes

// The size of the header, from its first ten or twelve bytes.
inline int64_t npy_header_bytes(std::string_view start, const std::string& path) {
  if (!start.starts_with("\x93NUMPY") || start.size() < 12) {
    throw InvalidArgument(fmt::format("'{}' is no .npy: it does not begin with \\x93NUMPY", path));
  }
  const auto byte = [&](size_t i) { return int64_t{static_cast<unsigned char>(start[i])}; };
  if (byte(6) == 1) return kNpyStart + byte(8) + 256 * byte(9);
  const int64_t bytes = 12 + byte(8) + (byte(9) << 8) + (byte(10) << 16) + (byte(11) << 24);
  if (bytes > (1 << 20)) throw InvalidArgument(fmt::format("'{}' has a header of {} bytes", path, bytes));
  return bytes;
}

inline NpyArray parse_npy_array(std::string_view header, const std::string& path) {
  const auto after = [&](std::string_view key) {
    const size_t at = header.find(key);
    if (at == std::string_view::npos) throw InvalidArgument(fmt::format("'{}' has an .npy header without {}", path, key));
    std::string_view left = header.substr(at + key.size());
    while (!left.empty() && (left[0] == ' ' || left[0] == ':')) left.remove_prefix(1);
    return left;
  };
  NpyArray array;
  array.offset = static_cast<int64_t>(header.size());
  const std::string_view descr = after("'descr'");
  const bool plain = descr.size() > 4 && descr[0] == '\'' && descr[4] == '\'' && descr[3] >= '1' && descr[3] <= '8';
  if (plain) {
    array.swapped = descr[1] == '>';
    array.kind = descr[2];
    array.bytes = descr[3] - '0';
  }
  const bool number = (array.kind == 'f' && array.bytes >= 2) || array.kind == 'i' || array.kind == 'u' || array.kind == 'b';
  const bool whole = array.bytes == 1 || array.bytes == 2 || array.bytes == 4 || array.bytes == 8;
  if (!plain || !number || !whole || (array.kind == 'f' && array.bytes == 2 && array.swapped)) {
    const std::string_view shown = descr.substr(0, descr.find(','));
    throw InvalidArgument(fmt::format("'{}' is an array of {}, not of numbers that Kith converts", path, shown));
  }
  array.by_columns = after("'fortran_order'").starts_with("True");
  std::string_view shape = after("'shape'");
  int64_t sizes[3] = {0, 0, 0};
  int axes = 0;
  shape.remove_prefix(1);
  while (!shape.empty() && shape[0] != ')' && axes < 3) {
    const auto [next, error] = std::from_chars(shape.data(), shape.data() + shape.size(), sizes[axes]);
    if (error != std::errc()) throw InvalidArgument(fmt::format("'{}' has an .npy header with a wrong shape", path));
    ++axes;
    shape.remove_prefix(static_cast<size_t>(next - shape.data()));
    while (!shape.empty() && (shape[0] == ',' || shape[0] == ' ' || shape[0] == 'L')) shape.remove_prefix(1);
  }
  constexpr int64_t kMost = int64_t{1} << 40;
  if (axes != 2 || sizes[0] < 0 || sizes[1] < 1 || sizes[0] > kMost || sizes[1] > (1 << 24)) {
    throw InvalidArgument(
        fmt::format("'{}' holds an array of {} axes; vectors are rows of two: x.reshape(rows, columns)", path, axes));
  }
  array.rows = sizes[0];
  array.cols = sizes[1];
  if (array.rows <= 1 || array.cols == 1) array.by_columns = false;  // both orders are one
  return array;
}

// A number rounded to f32. InvalidArgument if it is out of range.
inline float narrowed(double value, const std::string& path, int64_t row, int64_t column) {
  if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max()) {
    throw InvalidArgument(
        fmt::format("'{}': {} in row {}, column {} is too large for float32; divide the vectors by a number", path, value,
                    row, column));
  }
  return static_cast<float>(value);
}

}  // namespace kith::cli
