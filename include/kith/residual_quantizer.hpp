// Residual quantizer (RQ): approximates a vector by a sum of codewords, one from each of several codebooks. Each book
// is trained on the residuals of the books before it (Chen, Guan and Wang, "Approximate nearest neighbor search by
// residual vector quantization", 2010). Encoding is a beam search that keeps the best `beam` sums after each book.
//
// Costs are computed in float64 and rounded once to f32; ties go to the sum that was better after the book before, then
// to the smaller code. So the same rows, parameters and seed give the same bytes with any number of threads.
#pragma once

#include <kith/export.hpp>
#include <kith/vector_quantizer.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

struct ResidualQuantizerParams {
  int64_t codebooks = 8;     // 1 to 128
  int bits = 8;              // per codebook, 1 to 8: 2^bits codewords each
  int64_t beam = 5;          // sums kept after each book, 1 to 64; 1 is greedy
  uint64_t seed = 0;         // for the training sample and the first codewords
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// Given more than 65,536 rows, train() uses a sample. Fewer rows than codewords in a book are InvalidArgument; fewer
// than 39 per codeword are warned about. A code has (codebooks * bits + 7) / 8 bytes. values() are the codebooks;
// decode() adds up their codewords in the order of the books. lookup_table() is Unsupported for squared distances: the
// distance to a sum of codewords is not a sum of terms per codeword.
class KITH_EXPORT ResidualQuantizer : public VectorQuantizer {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit ResidualQuantizer(ResidualQuantizerParams params);

  // Uses codebooks that were trained before: codebooks x 2^bits x dimension values, contiguous, in host memory.
  void set_values(const VectorView<const float>& codebooks);

  const ResidualQuantizerParams& params() const { return params_; }

 private:
  ResidualQuantizerParams params_;
};

}  // namespace kith
