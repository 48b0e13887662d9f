// Residual quantizer (RQ): a vector becomes a sum of codewords, one of each of several codebooks, each book trained on
// what the books before it leave (Chen, Guan and Wang, "Approximate nearest neighbor search by residual vector
// quantization", 2010). Encoding keeps the best `beam` sums of codewords after each book (beam search).
//
// A cost is computed in float64 and rounded once to f32; ties go to the path that was better before, then to the
// smaller code. So the same rows, parameters and seed give the same bytes with any number of threads.
#pragma once

#include <kith/export.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

struct ResidualQuantizerParams {
  int64_t codebooks = 8;     // 1 to 128
  int bits = 8;              // of a code, 1 to 8: 2^bits codewords in each codebook
  int64_t beam = 5;          // sums kept after each book, 1 to 64; 1 is the greedy choice
  uint64_t seed = 0;         // of the training sample and of the first codewords
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// One thread may train while others encode: these use the codebooks that were there when they began.
class KITH_EXPORT ResidualQuantizer {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit ResidualQuantizer(ResidualQuantizerParams params);
  ~ResidualQuantizer();
  ResidualQuantizer(ResidualQuantizer&&) noexcept;
  ResidualQuantizer& operator=(ResidualQuantizer&&) noexcept;

  // Of more than 65,536 rows a sample is used. Fewer rows than codewords of a book are InvalidArgument; fewer than 39
  // for each are warned of. After an exception the former state stays.
  void train(const MatrixView& rows, const Resources& resources = Resources());
  void train(const VectorFile& rows, const Resources& resources = Resources());

  // Takes codebooks that were trained before: codebooks x 2^bits x columns, one after the other, in host memory.
  void set_values(const VectorView<const float>& codebooks);
  std::vector<float> values() const;

  const ResidualQuantizerParams& params() const;
  bool trained() const;
  int64_t cols() const;        // of vectors; 0 before training, and so is
  int64_t code_bytes() const;  // of a vector: (codebooks * bits + 7) / 8

  // Codes lie one after the other from the lowest bit of the first byte on. `codes`: u8, rows x code_bytes(). Rows and
  // codes are in host memory.
  void encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources = Resources()) const;
  // The sums of codewords, in the order of the books: f32, rows x cols().
  void decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources = Resources()) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kith
