// Codes by local search as callers have them, packed, found on the device of the call: the CPU's or a GPU's, which give
// the same bytes.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "quantize/additive/additive_encoding.hpp"

namespace kith {

// Rows and codes, which are read too where the start is given, in host memory or that of one GPU. They have been
// checked.
void encode_packed(const Codebooks& books, const AdditiveEncoding& encoding, const MatrixView& rows,
                   const MutableMatrixView& codes, const Resources& resources);

}  // namespace kith
