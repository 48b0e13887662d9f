// Bits that differ between packed bytes: the tiles of byte_product.hpp with a count in place of a product.
//
// Rows are packed byte by byte, so that a vector holds one byte of each of its rows and counts of a row's bytes are
// added up where they stand. A byte holds the count of 31 of them; longer rows go on in 32 bits. One query alone has
// tiles of its own.
// Cost: three operations for each query, column and vector of rows.
#pragma once

#include "kernels/panels/byte_panels.hpp"

namespace kith {

PanelShape bit_panel_shape();

// The base's terms are not looked at: rows that only fill up a panel may pass.
void scan_bit_panels(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                     BytePanelHits& hits);

}  // namespace kith
