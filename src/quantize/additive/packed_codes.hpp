// Additive codes as callers have them: packed, a few bits for each book from the lowest bit of the first byte on.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "kernels/codes/code_format.hpp"
#include "quantize/additive/codebooks.hpp"

#include <cstdint>

namespace kith {

// The columns of codebooks that are given as values; InvalidArgument for a number of values that no columns have, or
// values that are not finite.
int64_t columns_of_codebooks(int64_t books, int bits, const VectorView<const float>& values);

// A byte for each book and row, one after the other.
void pack_codes(const uint8_t* whole, const Codebooks& books, const MutableMatrixView& codes);
void unpack_codes(const MatrixView& codes, const Codebooks& books, uint8_t* whole);

// The bits of a code's last byte behind its last sub-code: they are zero, and a code where they are not is another
// quantizer's or damaged.
//
// InvalidArgument, naming the code, where such a bit is set. Codes of product and additive quantizers without a norm,
// in host memory or on a device, which is waited for.
void refuse_unused_bits(const MatrixView& codes, const CodeFormat& format, const Resources& resources);

}  // namespace kith
