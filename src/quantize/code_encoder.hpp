// How codes are made: a recipe, as factory strings and files name it, and an encoder per code, which knows everything
// about it except how to read it: the format describes the bytes (kernels/codes/code_format.hpp), readers decode them.
//
// Adding a code is an encoder in a file of its own and its line in code_table(); a code with a format of its own has
// a reader, too (kernels/codes/own_code.hpp).
#pragma once

#include <kith/local_search_quantizer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/footprint.hpp"
#include "kernels/assign/codewords_cpu.hpp"
#include "kernels/codes/code_format.hpp"
#include "quantize/additive/codebooks.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kith {

struct AdditiveEncoding;
class CodeEncoder;
class NamePart;
class ProductQuantizer;
class ResidualQuantizer;
class ScalarQuantizer;
class Words;
struct CodecTables;

extern const CodeEncoder* const kStoredCode;
extern const CodeEncoder* const kScalarCode;
extern const CodeEncoder* const kProductCode;
extern const CodeEncoder* const kLocalSearchCode;
extern const CodeEncoder* const kResidualCode;

struct CodeRecipe {
  const CodeEncoder* code = kStoredCode;
  DType dtype = DType::f32;  // of stored values
  int bits = 8;              // of a value (4, 6, 8), a sub-vector (4 to 8) or a codebook (1 to 8)
  int64_t parts = 0;         // sub-vectors, or codebooks
  int effort = 16;           // rounds of local search, or paths of a beam
  CodeNorm norm = CodeNorm::decoded;
  LocalSearchParams local = {};  // of local search: its training, sweeps and perturbations
  // Random numbers of a row's local search come from its values, so that the row's place does not matter; else from its
  // number.
  bool draws_by_content = true;
  bool of_residuals = false;  // the training rows are residuals (rows minus their lists' centres)

  // InvalidArgument for bits and parts that no code has.
  void validate() const;
  // InvalidArgument if it does not suit this many columns; names near divisors.
  CodeFormat format_for(int64_t cols) const;
};

struct TrainedValues {
  std::vector<float> values;    // in the layout of Codec::values()
  std::vector<double> history;  // the objective after each round, for codes trained in rounds
};

// Rows to encode, with shapes already checked.
struct EncodeTask {
  const CodecTables& codec;
  MatrixView rows;
  MutableMatrixView codes;
  const LocalSearchEncoding* how = nullptr;  // of local search; null: a greedy start and the recipe's effort
};

// Encodes by the recipe on a GPU, to contiguous codes with the same bytes as on the CPU. Rows and codes are in that
// device's memory or on the host, from where rows are copied piece by piece. Complete on return; Unsupported without
// CUDA.
void encode_cuda(const EncodeTask& task, int device, const Resources& resources);

// A name that other libraries have for such a code, as a pattern (# is a number, a final * anything), and what to write
// instead: a sentence that ends in a factory string.
struct OtherName {
  std::string_view pattern;
  std::string_view advice;
};

// Stateless; one object per code for the whole program.
class CodeEncoder {
 public:
  constexpr explicit CodeEncoder(CodeKind kind) : kind_(kind) {}
  CodeEncoder(const CodeEncoder&) = delete;
  CodeEncoder& operator=(const CodeEncoder&) = delete;

  CodeKind kind() const { return kind_; }  // the kind of its codes' format

  // In factory strings: names() for errors, "PQm, PQmxb"; parse() takes the part if it names this code; name() is
  // "PQ16x4".
  virtual std::string_view names() const = 0;
  virtual bool parse(NamePart& part, CodeRecipe& recipe) const = 0;
  virtual std::string name(const CodeRecipe& recipe) const = 0;
  virtual std::span<const OtherName> other_names() const { return {}; }
  // In files, and back: "product 128 8 16". parse_text() takes the line if its first word, `kind`, is this code's.
  virtual std::string text(const CodeRecipe& recipe, int64_t cols) const = 0;
  virtual bool parse_text(std::string_view kind, Words& words, CodeRecipe& recipe, int64_t& cols) const = 0;
  // None for a code that is not a quantizer by itself.
  using Quantizer = std::variant<ProductQuantizer, ScalarQuantizer, LocalSearchQuantizer, ResidualQuantizer>;
  virtual std::optional<Quantizer> quantizer(const CodeRecipe& recipe, uint64_t seed, bool check_finite) const;

  virtual void validate(const CodeRecipe& recipe) const = 0;
  // Whether its codes store norms, so that distances are not those of decoded vectors.
  virtual bool has_norms(const CodeRecipe& recipe) const { return recipe.norm != CodeNorm::decoded; }
  virtual CodeFormat format(const CodeRecipe& recipe, int64_t cols) const = 0;

  // The shape of the trained values, without those of norms, which follow them; empty if there are none.
  virtual std::vector<int64_t> shape(const CodeFormat& format) const = 0;
  int64_t value_count(const CodeFormat& format) const;
  // Computes the tables that encoding and decoding need from the values; and the memory of both at most.
  virtual void make_tables(CodecTables&) const {}
  virtual Footprint tables_footprint(const CodeFormat& format) const;

  // Fills `trained` as it goes: if it throws, `trained` has values if they are usable.
  virtual void train(const CodeRecipe& recipe, RowSource& rows, uint64_t seed, TrainedValues& trained,
                     const Resources& resources) const = 0;
  // The least memory of training; on a GPU if the rows are there or the resources name one.
  virtual Footprint training_footprint(const CodeRecipe&, const RowsInfo&, const Resources&) const { return {}; }

  // How many codewords of full length encoding compares a row with; at least 1.
  virtual double compared_codewords(const CodeRecipe&) const { return 1; }
  // Encodes on the CPU, in host memory. Codes are contiguous, unless codes_apart().
  virtual void encode(const EncodeTask& task, const Resources& resources) const = 0;
  virtual bool codes_apart() const { return false; }
  // Whether GPUs can encode it too (device_codec_cuda.hpp).
  virtual bool on_gpus() const { return false; }
  // Encodes on a GPU, with rows and codes in its memory or the host's: by encode_cuda(), unless overridden.
  virtual void encode_on_gpu(const EncodeTask& task, int device, const Resources& resources) const;
  // The least memory of either for such rows, besides rows and codes, whatever the trained values: on the GPU that
  // holds the rows or that the resources name, else on the CPU.
  Footprint encoding_footprint(const CodeRecipe& recipe, const CodeFormat& format, const RowsInfo& rows,
                               const Resources& resources) const;

 protected:
  ~CodeEncoder() = default;

  virtual Footprint cpu_encoding_footprint(const CodeRecipe&, const CodeFormat&, const RowsInfo&,
                                           const Resources&) const {
    return {};
  }

 private:
  const CodeKind kind_;
};

// The local search of a recipe; `how` as in EncodeTask.
AdditiveEncoding encoding_of(const CodeRecipe& recipe, const LocalSearchEncoding* how);

// A trained code as plain data: the values that files store, and tables computed from them.
struct CodecTables {
  CodeRecipe recipe;
  CodeFormat format;
  std::vector<float> values;             // as Codec::values() has them
  std::vector<float> levels;             // of the norms of additive codes
  std::vector<float> bases;              // of scalar codes
  std::vector<float> steps;              // likewise
  std::vector<NearestCodeword> nearest;  // for product codes: one per part

  // InvalidArgument for another number of values, or values that are not finite.
  CodecTables(const CodeRecipe& recipe, int64_t cols, std::vector<float> trained);

  const float* leasts() const { return values.data(); }
  const float* spans() const { return values.data() + format.cols; }
  CodecView view() const;
  int64_t bytes() const;
};

// All codes, to find one by its name, by a line of a file or by its format.
using CodeTable = std::span<const CodeEncoder* const>;
CodeTable code_table();

// The default recipe of a format; for additive codes, local search.
CodeRecipe recipe_of(const CodeFormat& format);

// The code that a whole part of a factory string names; InvalidArgument if there is none.
CodeRecipe parse_code_name(NamePart& part, CodeTable table = code_table());
// "SQ8, SQ6, ..., RQmxb".
std::string known_code_names(CodeTable table = code_table());

// The code of a line in a file; AboutProblem for any other text.
struct CodeLine {
  CodeRecipe recipe;
  int64_t cols = 0;
};
CodeLine parse_code_line(std::string_view line, CodeTable table = code_table());

}  // namespace kith
