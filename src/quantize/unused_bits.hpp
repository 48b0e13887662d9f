// The bits of a code's last byte behind its last sub-code: they are zero, and a code where they are not is another
// quantizer's or damaged.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "kernels/codes/code_format.hpp"

namespace kith {

// InvalidArgument, naming the code, where such a bit is set. Codes of product and additive quantizers without a norm, in
// host memory or on a device, which is waited for.
void refuse_unused_bits(const MatrixView& codes, const CodeFormat& format, const Resources& resources);

}  // namespace kith
