// RaBitQ codes, of one bit a column (kernels/codes/sign_code.hpp).
#pragma once

namespace kith {

class CodeEncoder;

extern const CodeEncoder* const kSignCode;

}  // namespace kith
