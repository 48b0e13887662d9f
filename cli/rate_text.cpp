#include "rate_text.hpp"

#include <fmt/format.h>

namespace kith::cli {

std::string rate_text(double per_second) {
  if (!(per_second >= 100)) return fmt::format("{:.3g}", per_second);
  const std::string digits = fmt::format("{:.0f}", per_second);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace kith::cli
