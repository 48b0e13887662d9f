// Converts values between dtypes, rounding to nearest and changing nothing else.
//
// Conversions to f32 are exact, as are those of small integers to any float. A float that would become infinite in f16
// or bf16, or that is no integer in u8's or i8's range, is refused: InvalidArgument with row, column and value. NaN and
// infinities stay unchanged among floats. The loops are written for the compiler to vectorise: a block is converted and
// tested as a whole, and only a block with a refused value is searched for it.
#pragma once

#include <kith/dtype.hpp>

#include <cstdint>
#include <string>

namespace kith {

// Where values come from, for the error: a run of them, counted along rows of `cols`.
struct ConversionPlace {
  const std::string& path;
  int64_t first = 0;
  int64_t cols = 1;
};

// `count` values one behind the other. Every pair of dtypes, equal ones too.
void convert_values(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count,
                    const ConversionPlace& place);

}  // namespace kith
