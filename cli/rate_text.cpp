#include "rate_text.hpp"

#include <fmt/format.h>

namespace kith::cli {

std::string rate_text(double per_second) {
  if (!(per_second >= 100)) return fmt::format("{:.3g}", per_second);
  std::string digits = fmt::format("{:.0f}", per_second);
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

}  // namespace kith::cli
