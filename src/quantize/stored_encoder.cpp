// Stored values: no training; values are rounded to the nearest of a dtype, and refused if it cannot hold them.
#include <kith/quantizer.hpp>

#include "core/typed_row.hpp"
#include "io/container/words.hpp"
#include "io/dtype_conversion.hpp"
#include "quantize/code_encoder.hpp"
#include "quantize/name_part.hpp"
#include "rows/row_blocks.hpp"

#include <fmt/format.h>

#include <string>

namespace kith {
namespace {

class StoredEncoder final : public CodeEncoder {
 public:
  constexpr StoredEncoder() : CodeEncoder(CodeKind::stored) {}

  std::string_view names() const override { return "SQfp16, SQbf16"; }
  bool parse(NamePart& part, CodeRecipe& recipe) const override {
    recipe.dtype = part.text().starts_with("SQf") ? DType::f16 : DType::bf16;
    return part.take("SQfp16") || part.take("SQbf16");
  }
  std::string name(const CodeRecipe& recipe) const override {
    return recipe.dtype == DType::f16 ? "SQfp16" : recipe.dtype == DType::bf16 ? "SQbf16" : "Flat";
  }
  std::string text(const CodeRecipe& recipe, int64_t cols) const override {
    return fmt::format("stored {} {}", cols, name_of(recipe.dtype));
  }
  bool parse_text(std::string_view kind, Words& words, CodeRecipe& recipe, int64_t& cols) const override {
    if (kind != "stored") return false;
    cols = words.number<int64_t>();
    recipe.dtype = parse_dtype(words.next());
    return true;
  }
  std::optional<Quantizer> quantizer(const CodeRecipe& recipe, uint64_t, bool check_finite) const override {
    if (recipe.dtype != DType::f16) return std::nullopt;
    return ScalarQuantizer({16, check_finite});
  }

  void validate(const CodeRecipe&) const override {}
  CodeFormat format(const CodeRecipe& recipe, int64_t cols) const override {
    if (cols < 1) throw InvalidArgument("the rows have no columns");
    return {.kind = kind(), .cols = cols, .dtype = recipe.dtype};
  }
  std::vector<int64_t> shape(const CodeFormat&) const override { return {}; }

  void train(const CodeRecipe&, RowSource&, uint64_t, TrainedValues&, const Resources&) const override {}

  bool on_gpus() const override { return true; }
  void encode(const EncodeTask& task, const Resources& resources) const override {
    constexpr int64_t kRows = 512;
    const CodeFormat& format = task.codec.format;
    const std::string name = "rows";
    const auto encode_some = [&](int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        convert_values(task.rows.row(i), task.rows.dtype(), task.codes.row(i), format.dtype, format.cols,
                       {name, i * format.cols, format.cols});
      }
    };
    for_row_blocks("encode", task.rows.rows(), resources, encode_some, kRows);
  }
};

constexpr StoredEncoder kStoredEncoder;

}  // namespace

const CodeEncoder* const kStoredCode = &kStoredEncoder;

}  // namespace kith
