// Residual quantizer (RQ): a vector becomes a sum of codewords, one of each of several codebooks, each book trained on
// what the books before it leave (Chen, Guan and Wang, "Approximate nearest neighbor search by residual vector
// quantization", 2010). Encoding keeps the best `beam` sums of codewords after each book (beam search).
//
// A cost is computed in float64 and rounded once to f32; ties go to the path that was better before, then to the
// smaller code. So the same rows, parameters and seed give the same bytes with any number of threads.
#pragma once

#include <kith/export.hpp>
#include <kith/vector_quantizer.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

struct ResidualQuantizerParams {
  int64_t codebooks = 8;     // 1 to 128
  int bits = 8;              // of a code, 1 to 8: 2^bits codewords in each codebook
  int64_t beam = 5;          // sums kept after each book, 1 to 64; 1 is the greedy choice
  uint64_t seed = 0;         // of the training sample and of the first codewords
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// From more than 65,536 rows train() takes a sample. Fewer rows than codewords of a book are InvalidArgument; fewer
// than 39 for each are warned of. A vector has (codebooks * bits + 7) / 8 bytes; values() are the codebooks, and
// decode() adds their codewords up in the order of the books. lookup_table() takes inner_product alone: squared
// distances to a sum of codewords are no sums (Unsupported).
class KITH_EXPORT ResidualQuantizer : public VectorQuantizer {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit ResidualQuantizer(ResidualQuantizerParams params);

  // Takes codebooks that were trained before: codebooks x 2^bits x columns, one after the other, in host memory.
  void set_values(const VectorView<const float>& codebooks);

  const ResidualQuantizerParams& params() const { return params_; }

 private:
  ResidualQuantizerParams params_;
};

}  // namespace kith
