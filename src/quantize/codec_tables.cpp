#include "quantize/codec_tables.hpp"

#include <kith/error.hpp>

#include "core/host_array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kith {

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
