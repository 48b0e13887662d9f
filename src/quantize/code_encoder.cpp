#include "quantize/code_encoder.hpp"

#include <kith/error.hpp>
#include <kith/quantizer.hpp>

#include "core/host_array.hpp"
#include "cuda/resolve_device.hpp"
#include "io/container/words.hpp"
#include "quantize/additive/code_norms.hpp"
#include "quantize/name_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace kith {

void CodeRecipe::validate() const { code->validate(*this); }
CodeFormat CodeRecipe::format_for(int64_t cols) const { return code->format(*this, cols); }

std::optional<CodeEncoder::Quantizer> CodeEncoder::quantizer(const CodeRecipe&, uint64_t, bool) const {
  return std::nullopt;
}

int64_t CodeEncoder::value_count(const CodeFormat& format) const {
  const std::vector<int64_t> sizes = shape(format);
  if (sizes.empty()) return 0;
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()) + norm_value_count(format.norm);
}

Footprint CodeEncoder::tables_footprint(const CodeFormat& format) const {
  return array_footprint<float>(2 * value_count(format) + kNormLevels);
}

void CodeEncoder::encode_on_gpu(const EncodeTask& task, int device, const Resources& resources) const {
  encode_cuda(task, device, resources);
}

Footprint CodeEncoder::encoding_footprint(const CodeRecipe& recipe, const CodeFormat& format, const RowsInfo& rows,
                                          const Resources& resources) const {
  const Device device = counted_device(rows.space, resources);
  if (device.kind == DeviceKind::cpu || !on_gpus()) return cpu_encoding_footprint(recipe, format, rows, resources);
  CodeRecipe own = recipe;
  own.norm = format.norm;
  const CodecTables any(own, format.cols, std::vector<float>(static_cast<size_t>(value_count(format))));
  const MatrixView view = rows.counted_view();
  const MutableMatrixView codes(reinterpret_cast<uint8_t*>(counted_only_memory()), rows.rows, format.bytes());
  return counted(resources, [&](const Resources& used) { encode_on_gpu({any, view, codes}, device.index, used); });
}

CodecTables::CodecTables(const CodeRecipe& given, int64_t cols, std::vector<float> trained)
    : recipe(given), format(given.format_for(cols)), values(std::move(trained)) {
  const int64_t wanted = recipe.code->value_count(format);
  if (static_cast<int64_t>(values.size()) != wanted) {
    throw InvalidArgument(
        fmt::format("{} trained values; codes of {} columns need {}", values.size(), format.cols, wanted));
  }
  const auto bad = std::find_if_not(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  if (bad != values.end()) {
    throw InvalidArgument(fmt::format("trained value {} is {}; it must be finite", bad - values.begin(), *bad));
  }
  recipe.code->make_tables(*this);
}

CodecView CodecTables::view() const { return {format, bases.data(), steps.data(), values.data(), levels.data()}; }

int64_t CodecTables::bytes() const {
  int64_t total = array_bytes<float>(static_cast<int64_t>(values.size() + levels.size() + 2 * bases.size()));
  for (const NearestCodeword& part : nearest) total += part.bytes();
  return total;
}

CodeRecipe recipe_of(const CodeFormat& format) {
  CodeRecipe recipe;
  recipe.dtype = format.dtype;
  recipe.bits = format.bits;
  recipe.parts = format.parts;
  recipe.norm = format.norm;
  for (const CodeEncoder* const code : code_table()) {
    if (code->kind() != format.kind) continue;
    recipe.code = code;
    break;
  }
  return recipe;
}

CodeRecipe parse_code_name(NamePart& part, CodeTable table) {
  for (const CodeEncoder* const code : table) {
    CodeRecipe recipe;
    recipe.code = code;
    if (!code->parse(part, recipe)) continue;
    part.finish();
    return recipe;
  }
  part.unknown();
}

std::string known_code_names(CodeTable table) {
  std::string names;
  for (const CodeEncoder* const code : table) names += fmt::format("{}{}", names.empty() ? "" : ", ", code->names());
  return names;
}

CodeLine parse_code_line(std::string_view line, CodeTable table) {
  for (const CodeEncoder* const code : table) {
    Words words(line);
    CodeLine parsed;
    parsed.recipe.code = code;
    if (code->parse_text(words.next(), words, parsed.recipe, parsed.cols)) return parsed;
  }
  throw AboutProblem(fmt::format("codes of a kind that is not known: '{}'", line));
}

}  // namespace kith
