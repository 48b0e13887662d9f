#include "byte_size.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

namespace kith::cli {
namespace {

constexpr std::string_view kUnitLetters = "KMGT";
constexpr double kLargest = 0x1p60;

std::string upper(std::string_view text) {
  std::string result;
  for (const char c : text) result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

// 1 for "" and "B", 1024 for "K" and "KIB", ...; 0 for anything else.
double factor_of(const std::string& unit) {
  if (unit.empty() || unit == "B") return 1;
  const size_t power = kUnitLetters.find(unit[0]);
  if (power == std::string_view::npos) return 0;
  if (unit.size() != 1 && unit.substr(1) != "IB") return 0;
  return std::pow(1024.0, static_cast<double>(power + 1));
}

}  // namespace

int64_t parse_byte_size(std::string_view text, std::string_view option) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const double factor = error == std::errc{} ? factor_of(upper({rest, end})) : 0;
  if (factor == 0 || !std::isfinite(number)) {
    throw InvalidArgument(
        fmt::format("{} '{}' is not a byte size; write a number, with one of the units K, M, G, T (powers of "
                    "1024) or none: 512M, 1.5G, 2GiB, 100000",
                    option, text));
  }
  const double bytes = number * factor;
  if (bytes < 1 || bytes > kLargest) {
    throw InvalidArgument(
        fmt::format("{} '{}' is out of range; allowed are 1 byte to {:.0f}T", option, text, kLargest / 0x1p40));
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace kith::cli
