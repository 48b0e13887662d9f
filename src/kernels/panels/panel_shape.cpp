// How many rows and queries a panel of each format holds, for the instruction set in use.
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/panel_product.hpp"

namespace kith {

PanelShape panel_shape(PanelFormat format) {
  if (holds_f32(format)) return f32_panel_shape();
  if (format == PanelFormat::bits) return bit_panel_shape();
  const CpuExtensions cpu = cpu_extensions();
  if (cpu.amx && format != PanelFormat::rounded) return {32, 32, true, false};
  if (cpu.vnni) return {48, 8, false, true};
#if defined(KITH_X86)
  return word_panel_shape();
#else
  return {12, 8, false, false};
#endif
}

}  // namespace kith
