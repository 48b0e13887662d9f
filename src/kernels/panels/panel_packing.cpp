#include "kernels/panels/panel_packing.hpp"

#include "core/scratch_layout.hpp"
#include "kernels/distance/distance_cpu.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace kith {
namespace {

using Four = uint32_t __attribute__((vector_size(16)));
using Sixteen = uint8_t __attribute__((vector_size(16)));

template <typename Vector>
Vector load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

// Four units of four rows.
template <typename Unit>
void transpose_four(const Unit* rows, int64_t stride, int64_t width, Unit* out) {
  const auto a = load<Four>(rows);
  const auto b = load<Four>(rows + stride);
  const auto c = load<Four>(rows + 2 * stride);
  const auto d = load<Four>(rows + 3 * stride);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Four columns[] = {
      __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
      __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  for (int u = 0; u < 4; ++u) std::memcpy(out + u * width, &columns[u], sizeof(Four));
}

// Sixteen bytes of sixteen rows. Each round deals the first half of the vectors and the second half out in turn, like
// cards: after four of them rows and columns have changed places.
void transpose_sixteen(const uint8_t* rows, int64_t stride, int64_t width, uint8_t* out) {
  Sixteen from[16];
  Sixteen to[16];
  for (int i = 0; i < 16; ++i) from[i] = load<Sixteen>(rows + i * stride);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 8; ++i) {
      to[2 * i] = __builtin_shufflevector(from[i], from[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      to[2 * i + 1] =
          __builtin_shufflevector(from[i], from[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    std::swap(from, to);
  }
  for (int c = 0; c < 16; ++c) std::memcpy(out + c * width, &from[c], sizeof(Sixteen));
}

// In blocks of kBlock x kBlock units, the last of which begin where they end with the rows and units; fewer than a
// block go one by one.
template <int64_t kBlock, typename Unit, typename Transpose>
void pack_blocks(const Unit* rows, int64_t stride, int64_t count, int64_t units, int64_t width, Unit* out,
                 const Transpose& transpose) {
  if (count >= kBlock && units >= kBlock) {
    for (int64_t u = 0; u < units; u += kBlock) {
      const int64_t unit = std::min(u, units - kBlock);
      for (int64_t i = 0; i < count; i += kBlock) {
        const int64_t row = std::min(i, count - kBlock);
        transpose(rows + row * stride + unit, stride, width, out + unit * width + row);
      }
    }
  } else {
    for (int64_t u = 0; u < units; ++u) {
      for (int64_t i = 0; i < count; ++i) out[u * width + i] = rows[i * stride + u];
    }
  }
  if (count == width) return;
  for (int64_t u = 0; u < units; ++u) std::fill(out + u * width + count, out + (u + 1) * width, Unit{});
}

}  // namespace

void pack_units(const uint32_t* rows, int64_t stride, int64_t count, int64_t units, int64_t width, uint32_t* out) {
  pack_blocks<4>(rows, stride, count, units, width, out, transpose_four<uint32_t>);
}

void pack_units(const float* rows, int64_t stride, int64_t count, int64_t units, int64_t width, float* out) {
  pack_blocks<4>(rows, stride, count, units, width, out, transpose_four<float>);
}

void pack_panel(PanelFormat format, int64_t cols, const void* vectors, int64_t count, int64_t width, void* out) {
  if (format == PanelFormat::bits) {
    return pack_blocks<16>(static_cast<const uint8_t*>(vectors), cols, count, cols, width, static_cast<uint8_t*>(out),
                           transpose_sixteen);
  }
  const int64_t units = units_per_part(format, cols);
  for (int64_t part = 0; part < parts_of(format); ++part) {
    pack_units(static_cast<const uint32_t*>(vectors) + part * units, units * parts_of(format), count, units, width,
               static_cast<uint32_t*>(out) + part * width * units);
  }
}

double move_vector(KeyKind kind, const std::vector<float>& origin, const float* vector, float* out) {
  const auto cols = static_cast<int64_t>(origin.size());
  if (has_differences(kind)) {
    for (int64_t c = 0; c < cols; ++c) out[c] = vector[c] - origin[static_cast<size_t>(c)];
    return canonical_squared_norm_cpu(out, cols);
  }
  const double squared = canonical_squared_norm_cpu(vector, cols);
  if (kind != KeyKind::cosine) {
    if (out != vector) std::copy_n(vector, cols, out);
    return squared;
  }
  const double inverse = canonical_inverse_norm(squared);
  scale_vector(vector, cols, inverse, out);
  return std::isfinite(squared) ? 1 : squared;
}

PanelScratch::PanelScratch(std::byte* memory, int64_t cols) {
  ScratchLayout layout;
  vector = layout.take<float>(cols).in(memory);
  const Slot<uint8_t> bytes = layout.take<uint8_t>(0, 64);
  packed_bytes = bytes.in(memory);
  packed = Slot<uint32_t>{bytes.offset, 0}.in(memory);
}

int64_t PanelScratch::bytes_for(PanelFormat format, int64_t cols, int64_t width) {
  ScratchLayout layout;
  layout.take<float>(cols);
  layout.take<uint8_t>(width * kith::packed_bytes(format, cols), 64);
  return layout.bytes;
}

}  // namespace kith
