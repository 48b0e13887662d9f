// Vectors that lie one by one, put side by side in a panel: unit u of vector i at u * width + i.
//
// Transposed in blocks of registers. Cost: one read and one write of the vectors.
#pragma once

#include "kernels/panels/panel_format.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kith {

// values * scale as units of the format, f32 (screened or not) or bf16 (both parts, one after the other).
void encode_floats(PanelFormat format, const float* values, int64_t cols, float scale, uint32_t* out);
// (values - origin) * scale, each step rounded.
void move_floats(const float* values, const float* origin, int64_t cols, float scale, float* out);

// Rounding a vector of floats to signed bytes with one scale, and how far that is from the vector.
//
// Cost: two passes over the values.
struct RoundedVector {
  float scale = 0;     // x is about scale * bytes
  float residual = 0;  // at least the length of x - scale * bytes
  int32_t sum = 0;     // of the bytes
};

// Rounds a row to words of four bytes, filled up with zeros; word w goes to out + w * width * 4, with `added` added to
// each of its bytes. Of a row that is not finite nothing means anything, nor may a bound be claimed.
RoundedVector round_row(const float* row, int64_t cols, int64_t width, int8_t* out, int32_t added = 0);
// The same for a query, with the bytes as the product in use wants them.
RoundedVector round_query(const float* query, int64_t cols, int64_t width, int8_t* out);

// out[u * width + i] = rows[i * stride + u], zeros for the rows from count on.
void pack_units(const uint32_t* rows, int64_t stride, int64_t count, int64_t units, int64_t width, uint32_t* out);
void pack_units(const float* rows, int64_t stride, int64_t count, int64_t units, int64_t width, float* out);

// `count` vectors of a format, packed_bytes() each, as a panel of `width`; its parts one after the other.
void pack_panel(PanelFormat format, int64_t cols, const void* vectors, int64_t count, int64_t width, void* out);

// Prepares a vector for a product: subtracts `origin` if the key is computed from differences, scales it to length 1 for
// cosine. Returns the squared norm that products are bounded with. `out` may be `vector`.
double move_vector(KeyKind kind, std::span<const float> origin, const float* vector, float* out);

// The same vector times a power of two; takes and returns its squared norm.
inline double scale_moved(double squared_norm, float scale, float* vector, int64_t cols) {
  if (scale == 1) return squared_norm;
  for (int64_t c = 0; c < cols; ++c) vector[c] *= scale;
  return squared_norm * scale * scale;
}

// Where one thread makes a panel: a vector of floats, and `width` vectors of the format, one by one.
struct PanelScratch {
  float* vector;
  uint32_t* packed;
  uint8_t* packed_bytes;  // the same

  PanelScratch(std::byte* memory, int64_t cols);
  static int64_t bytes_for(PanelFormat format, int64_t cols, int64_t width);
};

}  // namespace kith
