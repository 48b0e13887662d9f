// Inverted lists on a device, as plain pointers: what an index holds, and what is computed once for its search.
#pragma once

#include "ivf/segment/list_bounds_cuda.hpp"
#include "kernels/codes/code_format.hpp"
#include "kernels/codes/code_norm.hpp"

#include <cstdint>

namespace kith {

struct DeviceListsView {
  KeyKind kind = KeyKind::l2;
  CodecView codec;
  bool residual = false;  // codes are of vectors less their centre
  int64_t lists = 1;
  const float* centres = nullptr;    // lists x cols; none for a single list without one
  const int64_t* offsets = nullptr;  // lists + 1
  const uint8_t* codes = nullptr;    // in the order of lists
  const uint32_t* rows = nullptr;    // likewise
  int64_t count = 0;                 // of vectors

  // Whether halves are of vectors less their list's centre: by the codes themselves, or because the scan subtracts it.
  // Codewords are looked up as halves, which leaves no place for a subtraction.
  KITH_HOST_DEVICE bool subtracts() const {
    return !residual && centres != nullptr && has_differences(kind) && !codec.format.copies_codewords();
  }
  // What keys and their bounds are made from.
  KITH_HOST_DEVICE ListKey key() const { return {kind, has_norm_keys(codec.format, kind)}; }
  KITH_HOST_DEVICE bool has_origin() const { return centres != nullptr && (residual || subtracts()); }
};

// On the device; made by launch_prepare_lists.
struct PreparedLists {
  float* largest = nullptr;    // of all values that become halves: gives their scale
  ListFacts* facts = nullptr;  // of each list
  float* terms = nullptr;      // of each vector: |b|^2 / 2, what norms make of it, or cosine's f; none for products
  uint16_t* table = nullptr;   // halves of the codewords, where codes are of 8 bits
  uint16_t* halves = nullptr;  // of each vector, half_cols() apart: for codes that take long to decode

  // Rows of a multiple of 16 bytes.
  KITH_HOST_DEVICE static constexpr int64_t half_cols(int64_t cols) { return (cols + 7) / 8 * 8; }
  // All but codewords that are looked up: sums of them take long to decode, scalar codes and stored bytes some
  // instructions a value, halves and floats a subtraction, and floats are twice as much to read.
  static bool wants_halves(const CodeFormat& format) { return !format.copies_codewords(); }
  static bool has_terms(KeyKind kind) { return kind != KeyKind::inner_product; }
};

}  // namespace kith
