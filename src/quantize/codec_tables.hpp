// What a trained code is made of, as plain data: the values that files hold, and the tables made from them.
#pragma once

#include "kernels/codes/code_format.hpp"
#include "quantize/code_encoder.hpp"
#include "quantize/product/product_nearest_cpu.hpp"

#include <cstdint>
#include <vector>

namespace kith {

struct CodecTables {
  CodeRecipe recipe;
  CodeFormat format;
  std::vector<float> values;             // as Codec::values() has them
  std::vector<float> levels;             // of the norms of additive codes
  std::vector<float> bases;              // of scalar codes
  std::vector<float> steps;              // likewise
  std::vector<NearestCodeword> nearest;  // of product codes: one for each part

  // InvalidArgument for another number of values, or values that are not finite.
  CodecTables(const CodeRecipe& recipe, int64_t cols, std::vector<float> trained);

  const float* leasts() const { return values.data(); }
  const float* spans() const { return values.data() + format.cols; }
  CodecView view() const;
  int64_t bytes() const;
};

}  // namespace kith
