// Local search quantizer (LSQ): a vector becomes a sum of codewords, one of each of several codebooks, all as long as
// the vector (Martinez, Clement, Hoos and Little, "Revisiting additive quantization", 2016; Martinez, Hoos and Little,
// "Solving multi-codebook quantization in the GPU", 2016). At the same bytes its error is well below that of product
// codes; encoding takes longer.
//
// Codes are found by iterated local search: some codes are perturbed, each is made the best for the others in turn, and
// the result is kept where it is nearer. More rounds never raise the error of a vector; 16 rounds continued by 16 are
// 32 rounds. For given codebooks, seed and rounds the codes are the same bytes on CPUs and GPUs, for any number of
// threads, batch or memory limit: a code is chosen by exact cost, ties to the smaller, and draws depend on (seed, row
// number, round).
//
// Training is reproducible on each device; from one to the other codebooks differ in their last bits. Trained codebooks
// lie on a grid of a power of two on which sums of them are exact.
#pragma once

#include <kith/export.hpp>
#include <kith/resources.hpp>
#include <kith/vector_quantizer.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace kith {

// Where training begins: product codes behind a rotation, k-means of residuals, or codes drawn at random.
enum class AdditiveStart : uint8_t { opq, residual, random };
KITH_EXPORT std::string_view name_of(AdditiveStart start);
// "opq", "residual", "random"; throws InvalidArgument listing the names.
KITH_EXPORT AdditiveStart parse_additive_start(std::string_view name);

// Where encoding begins: each codebook's best code given those before it, codes drawn at random, or the codes that are
// there.
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
  int bits = 8;           // of a code, 1 to 8: 2^bits codewords in each codebook

  int64_t rounds = 25;              // of training: codebooks for codes, codes for codebooks
  int64_t train_search_rounds = 8;  // of local search in each of these
  AdditiveStart train_start = AdditiveStart::opq;
  // Lambda of the objective, added to how often a codeword is used: keeps codewords that few rows use near the mean, so that
  // other rows than those of training are coded better; above 0.
  double regularization = 10;
  // Moves codewords at random while training, by less and less. At first sums of codewords move by about this multiple of
  // their distance from the rows; 0: not at all.
  double anneal = 0.35;

  int64_t sweeps = 4;     // over the codebooks in a round of local search
  int64_t perturbed = 0;  // codes at the start of a round; 0: 4 of up to 10 codebooks, 2 of more
  SweepOrder order = SweepOrder::fixed;

  uint64_t seed = 0;  // of training
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  int64_t perturbed_codes() const {
    const int64_t usual = codebooks > 10 ? 2 : 4;
    return perturbed > 0 ? perturbed : usual < codebooks ? usual : codebooks;
  }
  KITH_EXPORT void validate() const;
};

struct LocalSearchEncoding {
  int64_t rounds = 16;     // 0: the start is the answer
  int64_t from_round = 0;  // the number of the first, to continue an earlier call
  int64_t first_row = 0;   // the number of the first row, where rows are encoded in several calls
  CodeStart start = CodeStart::greedy;
  uint64_t seed = 0;

  KITH_EXPORT void validate() const;
};

// Given more than 1,048,576 rows, train() uses a sample. Fewer rows than codewords of a book are InvalidArgument; fewer than 39
// for each are warned of. A line of each round's objective goes to the log. Where training is cancelled, the codebooks of
// the last complete round stay. A vector has (codebooks * bits + 7) / 8 bytes; values() are the codebooks, and decode()
// adds their codewords up in the order of the books. lookup_table() takes inner_product alone: squared distances to a sum
// of codewords are no sums (Unsupported).
class KITH_EXPORT LocalSearchQuantizer : public VectorQuantizer {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit LocalSearchQuantizer(LocalSearchParams params);

  // Takes codebooks that were trained before: codebooks x 2^bits x columns, one after the other, in host memory. They
  // decode as they are; for encoding they are rounded to their grid.
  void set_values(const VectorView<const float>& codebooks);
  // |X - C B|^2 + lambda |C|^2 after each round of the last training.
  std::vector<double> history() const;

  const LocalSearchParams& params() const { return params_; }

  // As LocalSearchEncoding() says, or as it is given. `codes` are read too where the start is given.
  using VectorQuantizer::encode;
  void encode(const MatrixView& rows, const MutableMatrixView& codes, const LocalSearchEncoding& encoding,
              const Resources& resources = Resources()) const;
  // encoding.first_row is the number of the file's first row; to `out` codes go only from a start that is not given.
  void encode(const VectorFile& rows, const MutableMatrixView& codes, const LocalSearchEncoding& encoding,
              const Resources& resources = Resources()) const;
  void encode(const VectorFile& rows, const CodesSink& out, const LocalSearchEncoding& encoding,
              const Resources& resources = Resources()) const;

 private:
  LocalSearchParams params_;
};

}  // namespace kith
