#include "kernels/panels/rounded_panels.hpp"

#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/panel_shape.hpp"

namespace kith {

RoundedVector round_row(const float* row, int64_t cols, int64_t width, int8_t* out) {
  return round_to_bytes(row, cols, width, 0, out);
}

RoundedVector round_query(const float* query, int64_t cols, int64_t width, int8_t* out) {
  const bool adds_128 = panel_shape(PanelFormat::rounded).signed_bytes;
  return round_to_bytes(query, cols, width, adds_128 ? 0x80808080u : 0, out);
}

void scan_rounded_panels([[maybe_unused]] const RoundedQueries& queries, [[maybe_unused]] const RoundedBase& base,
                         [[maybe_unused]] int64_t first, [[maybe_unused]] int64_t count,
                         [[maybe_unused]] PanelHits& hits) {
#if defined(KITH_X86)
  scan_rounded_vnni(queries, base, first, count, hits);
#elif defined(KITH_ARM)
  scan_rounded_dotprod(queries, base, first, count, hits);
#endif
}

}  // namespace kith
