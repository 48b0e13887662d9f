// What the bytes of a code are, as plain data: all that a reader needs to decode it, on the CPU and on GPUs.
//
//   stored   the values themselves, in a dtype
//   scalar   a few bits for each column: value = fma(code, step, base), rounded once
//   product  a few bits for each sub-vector: the codeword of that number, copied
//   additive a few bits for each codebook: the codewords of these numbers, as long as the vector, added up in f32 in
//            the order of the books; behind them there may be bits for the squared norm of the vector that is held
//   signs    a bit for each column: the column's centre plus or minus a step of the vector's own (sign_code.hpp), which
//            lies behind the bits and the squared norm
//
// Sub-codes lie one after the other from the lowest bit of the first byte on, as in FAISS.
#pragma once

#include <kith/dtype.hpp>

#include "core/host_device.hpp"

#include <cstdint>

namespace kith {

enum class CodeKind : uint8_t { stored, scalar, product, additive, signs };

// What an additive or sign code says of |x|^2, x being the vector that is held, the centre of its list included.
// Distances by l2 and sqeuclidean are then |q|^2 - 2 q x + norm (code_norm.hpp), and no vector is decoded for its norm.
//   decoded  nothing: distances are those of the decoded vector
//   none     nothing, and nobody asks: for inner products
//   float32  the norm itself
//   qint8    a byte: one of 256 levels at equal distances
//   cqint8   a byte: one of 256 levels that were trained
enum class CodeNorm : uint8_t { decoded, none, float32, qint8, cqint8 };

inline constexpr int64_t kNormLevels = 256;

struct CodeFormat {
  CodeKind kind = CodeKind::stored;
  int64_t cols = 0;
  DType dtype = DType::f32;           // of stored values
  int bits = 8;                       // of a value, a sub-vector or a codebook's code
  int64_t parts = 0;                  // sub-vectors, of cols / parts columns each, or codebooks
  CodeNorm norm = CodeNorm::decoded;  // of additive and sign codes

  // Product and additive codes of such a shape, whatever trained their codewords.
  static constexpr CodeFormat of_parts(int64_t cols, int bits, int64_t parts) {
    return {.kind = CodeKind::product, .cols = cols, .bits = bits, .parts = parts};
  }
  static constexpr CodeFormat of_books(int64_t cols, int bits, int64_t books, CodeNorm norm = CodeNorm::decoded) {
    return {.kind = CodeKind::additive, .cols = cols, .bits = bits, .parts = books, .norm = norm};
  }

  // How a vector is decoded: its values are there, each is so many steps above its column's base, parts of it are
  // codewords, all of it is a sum of them, or each is one step to either side of its column's centre.
  KITH_HOST_DEVICE constexpr bool stores_values() const { return kind == CodeKind::stored; }
  KITH_HOST_DEVICE constexpr bool steps_columns() const { return kind == CodeKind::scalar; }
  KITH_HOST_DEVICE constexpr bool copies_codewords() const { return kind == CodeKind::product; }
  KITH_HOST_DEVICE constexpr bool adds_codewords() const { return kind == CodeKind::additive; }
  KITH_HOST_DEVICE constexpr bool has_signs() const { return kind == CodeKind::signs; }

  KITH_HOST_DEVICE constexpr int64_t part_cols() const { return cols / parts; }
  KITH_HOST_DEVICE constexpr int64_t codewords() const { return int64_t{1} << bits; }
  KITH_HOST_DEVICE constexpr int norm_bits() const {
    return norm == CodeNorm::float32 ? 32 : norm >= CodeNorm::qint8 ? 8 : 0;
  }
  KITH_HOST_DEVICE constexpr bool has_norm() const { return norm >= CodeNorm::float32; }
  // Whether the norm is the number of a level.
  KITH_HOST_DEVICE constexpr bool has_levels() const { return norm >= CodeNorm::qint8; }
  // The first bit of the norm, behind all sub-codes; those of signs fill whole bytes.
  KITH_HOST_DEVICE constexpr int64_t norm_at() const { return has_signs() ? (cols + 7) / 8 * 8 : parts * bits; }
  constexpr int64_t used_bits() const {  // of a vector; those behind them are zeros, up to a whole byte
    if (stores_values()) return cols * size_of(dtype) * 8;
    if (has_signs()) return norm_at() + norm_bits() + 32;
    return steps_columns() ? cols * bits : norm_at() + norm_bits();
  }
  constexpr int64_t bytes() const { return (used_bits() + 7) / 8; }  // of a vector
};

// Pointers into one memory, the host's or a device's.
struct CodecView {
  CodeFormat format;
  const float* bases = nullptr;      // scalar: one for each column
  const float* steps = nullptr;      // likewise
  // product: parts x 2^bits x part_cols; additive: parts x 2^bits x cols; signs: the centre, one value for each column
  const float* codewords = nullptr;
  const float* levels = nullptr;     // additive: kNormLevels squared norms, where codes have the number of one
};

// The i-th sub-code of up to 8 bits. Reads no byte beyond the last that it needs.
KITH_HOST_DEVICE inline uint32_t sub_code(const uint8_t* code, int64_t i, int bits) {
  const int64_t first = i * bits;
  const int shift = static_cast<int>(first % 8);
  uint32_t word = code[first / 8];
  if (shift + bits > 8) word |= static_cast<uint32_t>(code[first / 8 + 1]) << 8;
  return word >> shift & ((1u << bits) - 1u);
}

}  // namespace kith
