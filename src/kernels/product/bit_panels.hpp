// Bits that differ between packed bytes: the tiles of byte_product.hpp with a count in place of a product.
//
//   value(q, x) = term(x) + the bits in which q and x differ
//
// Counts of a step are added up in bytes, which hold 31 of them, and then in 32 bits.
// Cost: three operations for each query and vector of rows.
#pragma once

#include "kernels/product/byte_product.hpp"

namespace kith {

PanelShape bit_panel_shape();

void scan_bit_panels(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                     BytePanelHits& hits);

}  // namespace kith
