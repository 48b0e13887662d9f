// The codebooks of an additive code, as plain data: a vector is the sum of one codeword of each book, all as long as
// the vector itself (Babenko and Lempitsky, "Additive quantization for extreme vector compression", 2014).
#pragma once

#include "core/host_device.hpp"

#include <cstdint>

namespace kith {

inline constexpr int64_t kMostCodebooks = 128;
inline constexpr int kMostBeam = 64;
inline constexpr int64_t kProductMostCols = 4096;  // that matrix units search; more would need a wider kNormSlack

struct Codebooks {
  const float* values = nullptr;  // books x 2^bits x cols
  int64_t books = 0;
  int bits = 8;
  int64_t cols = 0;

  KITH_HOST_DEVICE int64_t words() const { return int64_t{1} << bits; }  // of a book
  KITH_HOST_DEVICE int64_t all_words() const { return books * words(); }
  KITH_HOST_DEVICE int64_t size() const { return all_words() * cols; }
  KITH_HOST_DEVICE const float* book(int64_t k) const { return values + k * words() * cols; }
  KITH_HOST_DEVICE const float* word(int64_t k, int64_t j) const { return book(k) + j * cols; }
};

}  // namespace kith
