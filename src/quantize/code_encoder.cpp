#include "quantize/code_encoder.hpp"

#include <kith/error.hpp>
#include <kith/quantizer.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/code_norms.hpp"

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

}  // namespace kith
