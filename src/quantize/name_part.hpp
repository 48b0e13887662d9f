// Parses one part of a factory string ("OPQ16,IVF4096,PQ16x4") from left to right.
#pragma once

#include <kith/error.hpp>

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace kith {

class NamePart {
 public:
  // `known`: the possible parts, for error messages.
  NamePart(std::string_view text, std::string_view factory, const std::string& known)
      : left_(text), text_(text), factory_(factory), known_(&known) {}

  // Consumes `word` if it comes next.
  bool take(std::string_view word) {
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }
  bool at_number() const { return !left_.empty() && left_[0] >= '0' && left_[0] <= '9'; }
  // Consumes a positive number; an error if there is none.
  int64_t number() {
    int64_t value = 0;
    const auto [after, error] = std::from_chars(left_.data(), left_.data() + left_.size(), value);
    if (error == std::errc::invalid_argument || !at_number()) unknown();
    if (error != std::errc() || value > kLargest) refuse("has a number that is too large");
    if (value < 1) refuse("has a 0; it starts at 1");
    left_.remove_prefix(static_cast<size_t>(after - left_.data()));
    return value;
  }
  bool done() const { return left_.empty(); }
  void finish() const {
    if (!done()) unknown();
  }
  [[noreturn]] void unknown() const {
    throw InvalidArgument(
        fmt::format("unknown part '{}' of the index '{}'; known are, in this order: {}, with numbers "
                    "for the small letters",
                    text_, factory_, *known_));
  }
  // Throws InvalidArgument: "the part '...' of the index '...' " followed by the reason.
  [[noreturn]] void refuse(std::string_view reason) const {
    throw InvalidArgument(fmt::format("the part '{}' of the index '{}' {}", text_, factory_, reason));
  }
  std::string_view text() const { return text_; }
  std::string_view factory() const { return factory_; }

 private:
  static constexpr int64_t kLargest = int64_t{1} << 31;
  std::string_view left_;
  std::string_view text_;
  std::string_view factory_;
  const std::string* known_;
};

}  // namespace kith
