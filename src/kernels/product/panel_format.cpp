#include "kernels/product/panel_format.hpp"

#include "core/half.hpp"
#include "kernels/product/bit_panels.hpp"
#include "kernels/product/panel_product.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

int64_t columns_per_unit(PanelFormat format) {
  switch (format) {
    case PanelFormat::bf16: return 2;
    case PanelFormat::u8:
    case PanelFormat::i8:
    case PanelFormat::bits: return 4;
    default: return 1;
  }
}

// To nearest, ties to even. What a NaN becomes does not matter: nothing is claimed of such rows.
uint32_t bf16_bits(float value) {
  const uint32_t bits = bits_of_float(value);
  return (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
}

}  // namespace

PanelFormat choose_panel_format(KeyKind kind, DType queries, DType base, int64_t cols, const CpuExtensions& cpu) {
  if (kind == KeyKind::hamming) return PanelFormat::bits;
  if (!is_product(kind)) return PanelFormat::f32;
  const bool multiplies_bytes = cpu.dotprod || cpu.vnni || cpu.amx;
  // Normalised vectors are no bytes.
  if (multiplies_bytes && kind != KeyKind::cosine && queries == base && cols <= kMostByteColumns) {
    if (base == DType::u8) return PanelFormat::u8;
    if (base == DType::i8) return PanelFormat::i8;
  }
  return cpu.amx ? PanelFormat::bf16 : PanelFormat::f32;
}

PanelShape panel_shape(PanelFormat format) {
  if (format == PanelFormat::f32) return f32_panel_shape();
  if (format == PanelFormat::bits) return bit_panel_shape();
  const CpuExtensions cpu = cpu_extensions();
  if (cpu.amx) return {32, 32, true, false};
  if (cpu.vnni) return {48, 8, false, true};
  return {12, 8, false, false};
}

int64_t columns_per_step(PanelFormat format, int64_t cols) {
  const int64_t unit = columns_per_unit(format);
  const int64_t most = 16 * unit;
  const int64_t steps = (cols + most - 1) / most;
  return (cols + steps * unit - 1) / (steps * unit) * unit;
}

int64_t padded_columns(PanelFormat format, int64_t cols) {
  if (format == PanelFormat::f32) return cols;
  const int64_t step = columns_per_step(format, cols);
  return (cols + step - 1) / step * step;
}

int64_t units_per_part(PanelFormat format, int64_t cols) {
  return padded_columns(format, cols) / columns_per_unit(format);
}

int64_t packed_bytes(PanelFormat format, int64_t cols) {
  return units_per_part(format, cols) * parts_of(format) * static_cast<int64_t>(sizeof(uint32_t));
}

void pack_units(const uint32_t* rows, int64_t stride, int64_t count, int64_t units, int64_t width, uint32_t* out) {
  for (int64_t u = 0; u < units; ++u) {
    for (int64_t i = 0; i < count; ++i) out[u * width + i] = rows[i * stride + u];
    std::fill(out + u * width + count, out + (u + 1) * width, 0u);
  }
}

void encode_floats(PanelFormat format, const float* values, int64_t cols, float scale, uint32_t* out) {
  if (format == PanelFormat::f32) {
    for (int64_t c = 0; c < cols; ++c) out[c] = bits_of_float(values[c] * scale);
    return;
  }
  const int64_t units = units_per_part(format, cols);
  auto* const high = reinterpret_cast<uint16_t*>(out);
  auto* const low = reinterpret_cast<uint16_t*>(out + units);
  for (int64_t c = 0; c < cols; ++c) {
    const float value = values[c] * scale;
    const uint32_t rounded = bf16_bits(value);
    high[c] = static_cast<uint16_t>(rounded);
    low[c] = static_cast<uint16_t>(bf16_bits(value - float_of_bits(rounded << 16)));
  }
  std::fill(high + cols, high + 2 * units, uint16_t{0});
  std::fill(low + cols, low + 2 * units, uint16_t{0});
}

}  // namespace kith
