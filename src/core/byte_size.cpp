#include "core/byte_size.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kith {
namespace {

std::string formatted(int64_t bytes, bool up) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  if (up) {  // in the fourth digit
    const double step = value >= 1000 ? 1 : value >= 100 ? 10 : value >= 10 ? 100 : 1000;
    value = std::ceil(value * step) / step;
  }
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

}  // namespace

std::string format_bytes(int64_t bytes) { return formatted(bytes, false); }
std::string format_bytes_up(int64_t bytes) { return formatted(bytes, true); }

}  // namespace kith
