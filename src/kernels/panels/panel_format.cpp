#include "kernels/panels/panel_format.hpp"

#include "core/half.hpp"
#include "kernels/panels/bit_panels.hpp"
#include "kernels/panels/panel_product.hpp"
#include "kernels/panels/rounded_panels.hpp"

#include <algorithm>

namespace kith {
namespace {

// With fewer columns the sums are no longer what takes the time.
constexpr int64_t kFewestScreenedColumns = 32;

int64_t columns_per_unit(PanelFormat format) {
  switch (format) {
    case PanelFormat::bf16: return 2;
    case PanelFormat::u8:
    case PanelFormat::i8: return 4;
    default: return 1;
  }
}

// To nearest, ties to even, in the upper half. What a NaN becomes does not matter: nothing is claimed of such rows.
uint32_t bf16_above(float value) {
  const uint32_t bits = bits_of_float(value);
  return (bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u;
}

// Two values as a unit of either part.
struct Bf16Units {
  uint32_t high;
  uint32_t low;
};
Bf16Units bf16_units(float first, float second) {
  const uint32_t a = bf16_above(first);
  const uint32_t b = bf16_above(second);
  const uint32_t rest_a = bf16_above(first - float_of_bits(a));
  const uint32_t rest_b = bf16_above(second - float_of_bits(b));
  return {a >> 16 | b, rest_a >> 16 | rest_b};
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
  if (cpu.amx) return PanelFormat::bf16;
  const bool screen = multiplies_bytes && cols >= kFewestScreenedColumns && cols <= kMostRoundedColumns;
  return screen ? PanelFormat::screened : PanelFormat::f32;
}

PanelShape panel_shape(PanelFormat format) {
  if (holds_f32(format)) return f32_panel_shape();
  if (format == PanelFormat::bits) return bit_panel_shape();
  if (cpu_extensions().amx) return {32, 32, true, false};
  return byte_panel_shape();
}

PanelShape byte_panel_shape() {
  if (cpu_extensions().vnni) return {48, 8, false, true};
  return {12, 8, false, false};
}

int64_t columns_per_step(PanelFormat format, int64_t cols) {
  const int64_t unit = columns_per_unit(format);
  const int64_t most = 16 * unit;
  const int64_t steps = (cols + most - 1) / most;
  return (cols + steps * unit - 1) / (steps * unit) * unit;
}

int64_t padded_columns(PanelFormat format, int64_t cols) {
  if (holds_f32(format)) return cols;
  const int64_t step = columns_per_step(format, cols);
  return (cols + step - 1) / step * step;
}

int64_t units_per_part(PanelFormat format, int64_t cols) {
  return padded_columns(format, cols) / columns_per_unit(format);
}

int64_t packed_bytes(PanelFormat format, int64_t cols) {
  if (format == PanelFormat::bits) return cols;
  return units_per_part(format, cols) * parts_of(format) * static_cast<int64_t>(sizeof(uint32_t));
}

int64_t screen_bytes(PanelFormat format, int64_t cols) {
  return format == PanelFormat::screened ? rounded_words(cols) * 4 : 0;
}

void encode_floats(PanelFormat format, const float* values, int64_t cols, float scale, uint32_t* out) {
  if (holds_f32(format)) {
    for (int64_t c = 0; c < cols; ++c) out[c] = bits_of_float(values[c] * scale);
    return;
  }
  const int64_t units = units_per_part(format, cols);
  const int64_t whole = cols / 2;
  uint32_t* const low = out + units;
  for (int64_t u = 0; u < whole; ++u) {
    const Bf16Units both = bf16_units(values[2 * u] * scale, values[2 * u + 1] * scale);
    out[u] = both.high;
    low[u] = both.low;
  }
  for (int64_t u = whole; u < units; ++u) {
    const Bf16Units both = bf16_units(2 * u < cols ? values[2 * u] * scale : 0.0f, 0.0f);
    out[u] = both.high;
    low[u] = both.low;
  }
}

}  // namespace kith
