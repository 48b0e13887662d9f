#include "kernels/panels/panel_format.hpp"

#include "core/half.hpp"
#include "core/host_array.hpp"

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
  const uint32_t low_a = bf16_above(first - float_of_bits(a));
  const uint32_t low_b = bf16_above(second - float_of_bits(b));
  return {a >> 16 | b, low_a >> 16 | low_b};
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

int64_t columns_per_step(PanelFormat format, int64_t cols) {
  const int64_t unit = columns_per_unit(format);
  const int64_t most = 16 * unit;
  return divide_up(cols, divide_up(cols, most) * unit) * unit;
}

int64_t padded_columns(PanelFormat format, int64_t cols) {
  if (holds_f32(format)) return cols;
  return round_up(cols, columns_per_step(format, cols));
}

int64_t units_per_part(PanelFormat format, int64_t cols) {
  return padded_columns(format, cols) / columns_per_unit(format);
}

int64_t packed_bytes(PanelFormat format, int64_t cols) {
  if (format == PanelFormat::bits) return cols;
  if (format == PanelFormat::rounded) return 0;
  return array_bytes<uint32_t>(units_per_part(format, cols) * parts_of(format));
}

int64_t screen_bytes(PanelFormat format, int64_t cols) { return has_screen(format) ? rounded_words(cols) * 4 : 0; }

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
