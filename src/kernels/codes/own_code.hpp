// Codes whose bytes have a description of their own beside code_format.hpp: what those who read any code ask of them.
//
// A new one has its reader here. There is one so far, so that a reader needs no branch.
#pragma once

#include "kernels/codes/sign_code.hpp"

namespace kith {

KITH_HOST_DEVICE constexpr bool is_own_code(const CodeFormat& format) { return format.has_signs(); }

// value(column), four(first column, values), all(values), and own_square(), the squared norm of what the code adds to
// the codec's centre. The norm behind such a code is an estimate: each centre that is added to the vector moves it
// (moved_norm).
using OwnCodeReader = SignReader;

}  // namespace kith
