// Local search quantizer (LSQ): approximates a vector by a sum of codewords, one from each of several codebooks, all of
// the vector's full dimension (Martinez, Clement, Hoos and Little, "Revisiting additive quantization", 2016; Martinez,
// Hoos and Little, "Solving multi-codebook quantization in the GPU", 2016). For codes of the same size its error is
// well below that of product quantization; encoding takes longer.
//
// Codes are found by iterated local search: a round perturbs some codes, optimises each given the others, and keeps the
// result if its error is smaller. More rounds never increase the error of a vector, and 16 rounds continued by 16 equal
// 32. For given codebooks, seed and rounds the codes are the same bytes on CPUs and GPUs, for any number of threads,
// batch size or memory limit: costs are exact, ties go to the smaller code, and random numbers depend on (seed, row
// number, round).
//
// Training is reproducible on each device; codebooks trained on different devices differ in their last bits. Trained
// codebooks are rounded to multiples of a power of two, so that their sums are exact.
#pragma once

#include <kith/export.hpp>
#include <kith/resources.hpp>
#include <kith/vector_quantizer.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace kith {

// The first codes of training: product codes after a rotation, k-means of residuals, or random.
enum class AdditiveStart : uint8_t { opq, residual, random };
KITH_EXPORT std::string_view name_of(AdditiveStart start);
// "opq", "residual", "random"; throws InvalidArgument listing the names.
KITH_EXPORT AdditiveStart parse_additive_start(std::string_view name);

// The first codes of encoding: greedy (the best code of each book given the books before it), random, or the contents
// of the output array.
enum class CodeStart : uint8_t { greedy, random, given };
KITH_EXPORT std::string_view name_of(CodeStart start);
// "greedy", "random", "given".
KITH_EXPORT CodeStart parse_code_start(std::string_view name);

// Order in which a sweep visits the codebooks.
enum class SweepOrder : uint8_t { fixed, random };
KITH_EXPORT std::string_view name_of(SweepOrder order);
// "fixed", "random".
KITH_EXPORT SweepOrder parse_sweep_order(std::string_view name);

struct LocalSearchParams {
  int64_t codebooks = 8;  // 1 to 128
  int bits = 8;           // per codebook, 1 to 8: 2^bits codewords each

  int64_t rounds = 25;              // of training; each updates the codebooks, then the codes
  int64_t train_search_rounds = 8;  // of local search in each round of training
  AdditiveStart train_start = AdditiveStart::opq;
  // Lambda of the objective, added to the use count of each codeword; above 0. Keeps rarely used codewords near the
  // mean, so that vectors outside the training set are encoded better.
  double regularization = 10;
  // Random moves of the codewords during training, which fade out. At first they shift sums of codewords by about this
  // multiple of the sums' distance from the rows; 0: none.
  double anneal = 0.35;

  int64_t sweeps = 4;     // over the codebooks in a round of local search
  int64_t perturbed = 0;  // codes perturbed at the start of a round; 0: 4, or 2 if there are more than 10 codebooks
  SweepOrder order = SweepOrder::fixed;

  uint64_t seed = 0;  // for training
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  int64_t perturbed_codes() const {
    const int64_t usual = codebooks > 10 ? 2 : 4;
    return perturbed > 0 ? perturbed : usual < codebooks ? usual : codebooks;
  }
  KITH_EXPORT void validate() const;
};

struct LocalSearchEncoding {
  int64_t rounds = 16;     // 0: returns the start
  int64_t from_round = 0;  // number of the first round, to continue an earlier call
  int64_t first_row = 0;   // number of the first row, if several calls encode parts of one set
  CodeStart start = CodeStart::greedy;
  uint64_t seed = 0;

  KITH_EXPORT void validate() const;
};

// Given more than 1,048,576 rows, train() uses a sample. Fewer rows than codewords in a book are InvalidArgument; fewer
// than 39 per codeword are warned about. The objective of each round is logged. If training is cancelled, the codebooks
// of the last complete round stay. A code has (codebooks * bits + 7) / 8 bytes. values() are the codebooks; decode()
// adds up their codewords in the order of the books. lookup_table() is Unsupported for squared distances: the distance
// to a sum of codewords is not a sum of terms per codeword.
class KITH_EXPORT LocalSearchQuantizer : public VectorQuantizer {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit LocalSearchQuantizer(LocalSearchParams params);

  // Uses codebooks that were trained before: codebooks x 2^bits x dimension values, contiguous, in host memory.
  // Decoding uses them unchanged, encoding rounded to multiples of a power of two.
  void set_values(const VectorView<const float>& codebooks);
  // |X - C B|^2 + lambda |C|^2 after each round of the last training.
  std::vector<double> history() const;

  const LocalSearchParams& params() const { return params_; }

  // Without an `encoding`, its defaults apply. CodeStart::given reads the first codes from `codes`.
  using VectorQuantizer::encode;
  void encode(const MatrixView& rows, const MutableMatrixView& codes, const LocalSearchEncoding& encoding,
              const Resources& resources = Resources()) const;
  // encoding.first_row is the number of the file's first row. A sink cannot be combined with CodeStart::given.
  void encode(const VectorFile& rows, const MutableMatrixView& codes, const LocalSearchEncoding& encoding,
              const Resources& resources = Resources()) const;
  void encode(const VectorFile& rows, const CodesSink& out, const LocalSearchEncoding& encoding,
              const Resources& resources = Resources()) const;

 private:
  LocalSearchParams params_;
};

}  // namespace kith
