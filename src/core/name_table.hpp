// The names of an enum's values, both ways.
#pragma once

#include <kith/error.hpp>

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace kith {

template <typename Enum, size_t N>
struct NameTable {
  std::array<std::pair<Enum, std::string_view>, N> entries;

  constexpr std::string_view name(Enum value) const {
    for (const auto& [candidate, text] : entries) {
      if (candidate == value) return text;
    }
    return "?";
  }

  Enum parse(std::string_view text, std::string_view what) const {
    std::string known;
    for (const auto& [value, name] : entries) {
      if (name == text) return value;
      known += known.empty() ? "" : ", ";
      known += name;
    }
    throw InvalidArgument(fmt::format("unknown {} '{}'; known are: {}", what, text, known));
  }
};

}  // namespace kith
