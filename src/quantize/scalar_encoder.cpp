// Scalar codes: the least value and the span of each column are trained, in one pass over all rows; a value is rounded
// down to one of 2^bits - 1 steps, and decoded to the middle of the step. A value that is no number has the first code.
#include <kith/quantizer.hpp>

#include "io/container/words.hpp"
#include "quantize/encode_blocks.hpp"
#include "quantize/name_part.hpp"
#include "kernels/codes/scalar_code.hpp"
#include "quantize/scalar_codes_cpu.hpp"
#include "quantize/scalar_training.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

bool has_known_bits(const CodeRecipe& recipe) { return recipe.bits == 4 || recipe.bits == 6 || recipe.bits == 8; }

class ScalarEncoder final : public CodeEncoder {
 public:
  constexpr ScalarEncoder() : CodeEncoder(CodeKind::scalar) {}

  std::string_view names() const override { return "SQ8, SQ6, SQ4"; }
  bool parse(NamePart& part, CodeRecipe& recipe) const override {
    NamePart rest = part;
    if (!rest.take("SQ") || !rest.at_number()) return false;
    recipe.bits = static_cast<int>(rest.number());
    if (!has_known_bits(recipe)) part.refuse(fmt::format("asks for {} bits; there are 8, 6, 4, and fp16", recipe.bits));
    part = rest;
    return true;
  }
  std::string name(const CodeRecipe& recipe) const override { return fmt::format("SQ{}", recipe.bits); }
  std::string text(const CodeRecipe& recipe, int64_t cols) const override {
    return fmt::format("scalar {} {}", cols, recipe.bits);
  }
  bool parse_text(std::string_view kind, Words& words, CodeRecipe& recipe, int64_t& cols) const override {
    if (kind != "scalar") return false;
    cols = words.number<int64_t>();
    recipe.bits = words.number<int>();
    return true;
  }
  std::optional<Quantizer> quantizer(const CodeRecipe& recipe, uint64_t, bool check_finite) const override {
    return ScalarQuantizer({recipe.bits, check_finite});
  }

  void validate(const CodeRecipe& recipe) const override {
    if (has_known_bits(recipe)) return;
    throw InvalidArgument(fmt::format("bits = {}; a scalar code has 4, 6 or 8 bits a value", recipe.bits));
  }
  CodeFormat format(const CodeRecipe& recipe, int64_t cols) const override {
    if (cols < 1) throw InvalidArgument("the rows have no columns");
    validate(recipe);
    return {.kind = kind(), .cols = cols, .bits = recipe.bits};
  }
  std::vector<int64_t> shape(const CodeFormat& format) const override { return {2, format.cols}; }
  void make_tables(CodecTables& tables) const override {
    const CodeFormat& format = tables.format;
    for (int64_t c = 0; c < format.cols; ++c) {
      tables.bases.push_back(scalar_base(tables.leasts()[c], tables.spans()[c], format.bits));
      tables.steps.push_back(scalar_step(tables.spans()[c], format.bits));
    }
  }

  void train(const CodeRecipe&, RowSource& rows, uint64_t, TrainedValues& trained,
             const Resources& resources) const override {
    trained.values = train_scalar(rows, resources);
  }
  int64_t training_bytes(const CodeRecipe&, const RowsInfo& rows, int threads) const override {
    return scalar_training_bytes(rows, threads);
  }

  bool on_gpus() const override { return true; }
  void encode(const EncodeTask& task, const Resources& resources) const override {
    const CodecTables& codec = task.codec;
    const BlockScratch scratch(codec.format, task.rows.dtype(), task.rows.rows(), 0);
    encode_blocks(task, scratch, resources,
                  [&](const float* rows, int64_t stride, int64_t count, uint8_t* codes, float*, uint8_t* bytes) {
                    encode_scalar_cpu(codec.format, codec.leasts(), codec.spans(), rows, stride, count, codes, bytes);
                  });
  }
  int64_t encoding_bytes(const CodeRecipe&, const CodeFormat& format, int64_t rows, DType dtype,
                         int threads) const override {
    return BlockScratch(format, dtype, rows, 0).memory(threads);
  }
};

constexpr ScalarEncoder kScalarEncoder;

}  // namespace

const CodeEncoder* const kScalarCode = &kScalarEncoder;

}  // namespace kith
