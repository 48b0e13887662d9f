#include "kernels/panels/panel_format.hpp"

#include "core/host_array.hpp"

namespace kith {
namespace {

// With fewer columns the sums are no longer what takes the time.
constexpr int64_t kFewestScreenedColumns = 32;
constexpr bool has_screened_columns(int64_t cols) {
  return cols >= kFewestScreenedColumns && cols <= kMostRoundedColumns;
}

int64_t columns_per_unit(PanelFormat format) {
  switch (format) {
    case PanelFormat::bf16: return 2;
    case PanelFormat::u8:
    case PanelFormat::i8: return 4;
    default: return 1;
  }
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
  return has_rounded_product(cpu) && has_screened_columns(cols) ? PanelFormat::screened : PanelFormat::f32;
}

bool prepares_screen(PanelFormat format, int64_t cols, const CpuExtensions& cpu) {
  if (format == PanelFormat::bf16) return has_rounded_product(cpu) && has_screened_columns(cols);
  return format == PanelFormat::screened;
}

PanelFormat kept_format(PanelFormat format, int64_t rows, int64_t cols, const CpuExtensions& cpu) {
  const bool tiles = format == PanelFormat::bf16;
  if (!holds_f32(format) && !tiles) return format;
  if (cols < kFewestScreenedColumns || rows < kFewestKeptRows) return tiles ? format : PanelFormat::f32;
  return prepares_screen(format, cols, cpu) ? PanelFormat::rounded : PanelFormat::norms;
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
  if (lacks_panels(format)) return 0;
  return array_bytes<uint32_t>(units_per_part(format, cols) * parts_of(format));
}

int64_t screen_bytes(PanelFormat format, int64_t cols) { return has_screen(format) ? rounded_words(cols) * 4 : 0; }

}  // namespace kith
