// A reader of the few Python literals that an .npy header is made of: strings, True and False, tuples of integers, and
// brackets that are skipped whole. Iterative, so that no nesting can exhaust the stack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

class PythonLiteral {
 public:
  // Reads `text` from `offset` on. What it returns points into `text`; what it cannot read is CorruptFile in `path`.
  PythonLiteral(std::string_view text, int64_t offset, const std::string& path)
      : text_(text), at_(static_cast<size_t>(offset)), path_(path) {}

  // Where the next token begins.
  int64_t offset();
  // Takes `token` if it comes next.
  bool accept(char token);
  void expect(char token);
  void expect_end();

  // In either quotes; without escapes, which no header needs.
  std::string_view string();
  bool boolean();
  // "()", "(3,)", "(3, 4)"; none is negative. A Python 2 header may have an L behind a number.
  std::vector<int64_t> integer_tuple();
  // A string's content, or the text of a list or tuple with its brackets.
  std::string_view string_or_brackets();

  [[noreturn]] void fail(int64_t offset, std::string_view reason) const;

 private:
  void skip_space();
  bool at_end() const { return at_ == text_.size(); }
  int64_t integer();
  std::string_view brackets();
  [[noreturn]] void fail_here(std::string_view expected);

  std::string_view text_;
  size_t at_;
  const std::string& path_;
};

// Text from a file as it can stand in a message: short, and without control characters.
std::string printable(std::string_view text);

}  // namespace kith
