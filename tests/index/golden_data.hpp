// The vectors of the golden recipes: numbers made of integers alone, the same on every machine.
#pragma once

#include <kith/dtype.hpp>
#include <kith/view.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kith::testing {

inline constexpr int64_t kGoldenCols = 8;

// Splitmix64 of a place in a matrix; 0 .. range - 1.
inline int64_t golden_number(uint64_t seed, int64_t row, int64_t col, int64_t range) {
  uint64_t z = (seed * 1000003 + static_cast<uint64_t>(row)) * 1009 + static_cast<uint64_t>(col) + 1;
  z *= 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<int64_t>(z % static_cast<uint64_t>(range));
}

// Rows around six centres: -scale to scale, and a quarter of that beside them.
inline int64_t golden_value(int64_t row, int64_t col, int64_t scale) {
  const int64_t centre = golden_number(1, golden_number(2, row, 0, 6), col, 2 * scale * 4 / 5 + 1) - scale * 4 / 5;
  return centre + golden_number(3, row, col, 2 * (scale / 5) + 1) - scale / 5;
}

// A small whole number as f16, exactly.
inline uint16_t golden_half(int value) {
  if (value == 0) return 0;
  const int magnitude = value < 0 ? -value : value;
  int exponent = 0;
  while (magnitude >> (exponent + 1) != 0) ++exponent;
  const int mantissa = (magnitude << 10 >> exponent) & 0x3ff;
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | mantissa);
}

// Rows first .. first + rows - 1 of one endless matrix, in any dtype; without negative values where asked.
class GoldenRows {
 public:
  GoldenRows(DType dtype, bool positive, int64_t first, int64_t rows) : dtype_(dtype), rows_(rows) {
    const bool fine = dtype == DType::f32;
    const int64_t scale = fine ? 1 << 22 : 60;
    const int64_t shift = positive || dtype == DType::u8 ? scale : 0;
    const int64_t bytes = size_of(dtype);
    bytes_.resize(static_cast<size_t>(rows * kGoldenCols * bytes));
    for (int64_t i = 0; i < rows * kGoldenCols; ++i) {
      const int64_t value = golden_value(first + i / kGoldenCols, i % kGoldenCols, scale) + shift;
      const float real = static_cast<float>(value) * (fine ? 0x1p-18F : 1.0F);
      store(&bytes_[static_cast<size_t>(i * bytes)], static_cast<int>(value), real);
    }
  }

  MatrixView view() const { return {bytes_.data(), dtype_, {rows_, kGoldenCols, kGoldenCols}}; }

 private:
  void store(uint8_t* to, int value, float real) const {
    uint32_t bits = 0;
    std::memcpy(&bits, &real, 4);
    const auto half = dtype_ == DType::f16 ? golden_half(value) : static_cast<uint16_t>(bits >> 16);
    switch (dtype_) {
      case DType::f32: std::memcpy(to, &real, 4); break;
      case DType::f16:
      case DType::bf16: std::memcpy(to, &half, 2); break;
      default: *to = static_cast<uint8_t>(value);
    }
  }

  DType dtype_;
  int64_t rows_;
  std::vector<uint8_t> bytes_;
};

// float64 vectors far from 0 in two columns, as times and places are; tests/python/test_golden_files.py has the same.
inline std::vector<double> golden_doubles(int64_t first, int64_t rows) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows * kGoldenCols; ++i) {
    const int64_t col = i % kGoldenCols;
    const auto fine = static_cast<double>(golden_value(first + i / kGoldenCols, col, 1 << 22));
    values.push_back(col == 0 ? 1.7e9 + fine * 0x1p-12 : col == 1 ? 48.75 + fine * 0x1p-38 : fine * 0x1p-18);
  }
  return values;
}

}  // namespace kith::testing
