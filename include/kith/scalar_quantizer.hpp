// Scalar quantizer: each value of a vector is rounded to a few bits, between the least and the largest value that its
// column had in training; or, with 16 bits, to the nearest f16, without training values.
//
// Codes are those of FAISS for the same ranges, bit for bit. kith/vector_quantizer.hpp has what it shares with others:
// train, encode, decode, lookup tables.
#pragma once

#include <kith/export.hpp>
#include <kith/vector_quantizer.hpp>

namespace kith {

struct ScalarQuantizerParams {
  int bits = 8;              // of a value: 4, 6, 8, or 16 for f16
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// train() looks at all rows. A vector has (cols * bits + 7) / 8 bytes. Values beyond a range go to its end; with 16
// bits a value that f16 cannot hold is InvalidArgument. decode() gives the middle of what each code stands for. There
// is no lookup table for 16 bits: Unsupported.
class KITH_EXPORT ScalarQuantizer : public VectorQuantizer {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit ScalarQuantizer(ScalarQuantizerParams params);

  // Takes ranges that were found before: the least value of each of `cols` columns, then the span of each, in host
  // memory; none for 16 bits. values() gives them back.
  using VectorQuantizer::set_values;

  const ScalarQuantizerParams& params() const { return params_; }

 private:
  ScalarQuantizerParams params_;
};

}  // namespace kith
