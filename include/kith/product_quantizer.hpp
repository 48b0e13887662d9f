// Product quantizer: cuts a vector into sub-vectors and replaces each by the number of its nearest codeword (Jegou et
// al., "Product quantization for nearest neighbor search", 2011). A code takes parts * bits bits, whatever the
// dimension.
//
// Training is a k-means of each sub-vector. Encoding is exact: it picks the first codeword by (squared distance,
// number), where a distance is computed in float64 and rounded once to f32. So the same rows, parameters and seed give
// the same bytes on every device, with any number of threads, from files as from memory.
//
// train(), encode(), decode() and lookup_table() are described in kith/vector_quantizer.hpp.
#pragma once

#include <kith/export.hpp>
#include <kith/vector_quantizer.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

struct ProductQuantizerParams {
  int64_t parts = 8;         // sub-vectors; must divide the dimension
  int bits = 8;              // per sub-vector, 4 to 8: 2^bits codewords each
  uint64_t seed = 0;         // for the training sample and the first codewords
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// Given more than 256 rows per codeword, train() uses a sample. Fewer rows than codewords are InvalidArgument; fewer
// than 39 per codeword are warned about. A code has (parts * bits + 7) / 8 bytes. values() are the codewords; decode()
// concatenates them.
class KITH_EXPORT ProductQuantizer : public VectorQuantizer {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit ProductQuantizer(ProductQuantizerParams params);

  // Uses codewords that were trained before: parts x 2^bits x (dimension / parts) values, contiguous, in host memory.
  void set_values(const VectorView<const float>& codewords);

  const ProductQuantizerParams& params() const { return params_; }

 private:
  ProductQuantizerParams params_;
};

}  // namespace kith
