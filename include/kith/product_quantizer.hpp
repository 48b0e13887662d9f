// Product quantizer: a vector is cut into sub-vectors, and each becomes the number of its nearest codeword (Jegou et
// al., "Product quantization for nearest neighbor search", 2011). A vector of any number of columns takes parts * bits
// bits.
//
// Training is a k-means of each sub-vector. A code is exact: of all codewords the first by (squared distance, number),
// where a distance is computed in float64 and rounded once to f32. So the same rows, parameters and seed give the same
// bytes on every device, with any number of threads, from a file as from memory.
//
// kith/vector_quantizer.hpp has what it shares with others: train, encode, decode, lookup tables.
#pragma once

#include <kith/export.hpp>
#include <kith/vector_quantizer.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

struct ProductQuantizerParams {
  int64_t parts = 8;         // sub-vectors; must divide the columns
  int bits = 8;              // of a sub-vector's code, 4 to 8: 2^bits codewords each
  uint64_t seed = 0;         // of the training sample and its first codewords
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// From more than 256 rows for each codeword train() takes a sample. Fewer rows than codewords are InvalidArgument;
// fewer than 39 for each are warned of. A vector has (parts * bits + 7) / 8 bytes; values() are the codewords, and
// decode() puts them side by side.
class KITH_EXPORT ProductQuantizer : public VectorQuantizer {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit ProductQuantizer(ProductQuantizerParams params);

  // Takes codewords that were trained before: parts x 2^bits x columns of a part, one after the other, in host memory.
  void set_values(const VectorView<const float>& codewords);

  const ProductQuantizerParams& params() const { return params_; }

 private:
  ProductQuantizerParams params_;
};

}  // namespace kith
