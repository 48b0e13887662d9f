// What a scan of bytes (scan_rows_cpu.hpp) sums up, for the files of its instruction families.
#pragma once

#include "kernels/distance/canonical.hpp"

#include <cstdint>

namespace kith {

enum class DotKind : uint8_t { differences, products, products_and_squares };

template <DotKind kKind>
struct DotTag {
  static constexpr DotKind kind = kKind;
};

// Calls use(DotTag<kind>()). Squares are the facts of a row.
template <typename Use>
void visit_dots(KeyKind kind, const float* facts, const Use& use) {
  if (has_differences(kind)) return use(DotTag<DotKind::differences>());
  if (facts == nullptr) return use(DotTag<DotKind::products>());
  use(DotTag<DotKind::products_and_squares>());
}

}  // namespace kith
