#include "quantize/code_encoder.hpp"

#include <kith/quantizer.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/norm_levels.hpp"

#include <functional>
#include <numeric>

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

int64_t CodeEncoder::table_bytes(const CodeFormat& format) const {
  return array_bytes<float>(2 * value_count(format) + kNormLevels);
}

}  // namespace kith
