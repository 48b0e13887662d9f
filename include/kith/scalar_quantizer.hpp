// Scalar quantizer: rounds each value of a vector to a few bits, between the smallest and largest value of its column
// in the training rows; with 16 bits to the nearest f16, which needs no training values.
//
// For the same ranges, codes are those of FAISS bit for bit. train(), encode(), decode() and lookup_table() are
// described in kith/vector_quantizer.hpp.
#pragma once

#include <kith/export.hpp>
#include <kith/vector_quantizer.hpp>

namespace kith {

struct ScalarQuantizerParams {
  int bits = 8;              // per value: 4, 6, 8, or 16 for f16
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// train() uses all rows. A code has (dimension * bits + 7) / 8 bytes. Values outside the range are clamped to it; with
// 16 bits a value that f16 cannot hold is InvalidArgument. decode() returns the middle of each code's interval.
// lookup_table() is Unsupported for 16 bits.
class KITH_EXPORT ScalarQuantizer : public VectorQuantizer {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit ScalarQuantizer(ScalarQuantizerParams params);

  // Uses given ranges: the smallest value of each of `dimension` columns, then the width of each range, in host memory;
  // none for 16 bits. values() returns them.
  using VectorQuantizer::set_values;

  const ScalarQuantizerParams& params() const { return params_; }

 private:
  ScalarQuantizerParams params_;
};

}  // namespace kith
