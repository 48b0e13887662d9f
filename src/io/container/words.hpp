// Reads the words of a line of text in a file one by one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace kith {

// A problem in such a text.
class AboutProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Words {
 public:
  explicit Words(std::string_view line) : left_(line) {}

  bool done() const { return left_.empty(); }
  std::string_view next() {
    if (left_.empty()) throw AboutProblem("a line ends early");
    const size_t end = std::min(left_.find(' '), left_.size());
    const std::string_view word = left_.substr(0, end);
    left_.remove_prefix(std::min(end + 1, left_.size()));
    return word;
  }
  template <typename T>
  T number() {
    const std::string_view word = next();
    T value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) {
      throw AboutProblem(fmt::format("'{}' is not a number that can be here", word));
    }
    return value;
  }

 private:
  std::string_view left_;
};

}  // namespace kith
