// Vectors that lie one by one, put side by side in a panel: unit u of vector i at u * width + i.
//
// Transposed in blocks of registers. Cost: one read and one write of the vectors.
#pragma once

#include "kernels/panels/panel_format.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kith {

// vector times scale, each product rounded once; out may be the vector.
void scale_vector(const float* vector, int64_t cols, double scale, float* out);

// out[u * width + i] = rows[i * stride + u], zeros for the rows from count on.
void pack_units(const uint32_t* rows, int64_t stride, int64_t count, int64_t units, int64_t width, uint32_t* out);
void pack_units(const float* rows, int64_t stride, int64_t count, int64_t units, int64_t width, float* out);

// `count` vectors of a format, packed_bytes() each, as a panel of `width`; its parts one after the other.
void pack_panel(PanelFormat format, int64_t cols, const void* vectors, int64_t count, int64_t width, void* out);

// A vector as a product takes it: less `origin` where the key is made of differences, of length 1 for cosine. Returns
// its squared norm, of which products are bounded. `out` may be `vector`.
double move_vector(KeyKind kind, const std::vector<float>& origin, const float* vector, float* out);

// Where one thread makes a panel: a vector of floats, and `width` vectors of the format, one by one.
struct PanelScratch {
  float* vector;
  uint32_t* packed;
  uint8_t* packed_bytes;  // the same

  PanelScratch(std::byte* memory, int64_t cols);
  static int64_t bytes_for(PanelFormat format, int64_t cols, int64_t width);
};

}  // namespace kith
