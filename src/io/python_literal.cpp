#include "io/python_literal.hpp"

#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void PythonLiteral::skip_space() {
  while (!at_end() && is_space(text_[at_])) ++at_;
}

int64_t PythonLiteral::offset() {
  skip_space();
  return static_cast<int64_t>(at_);
}

bool PythonLiteral::accept(char token) {
  skip_space();
  if (at_end() || text_[at_] != token) return false;
  ++at_;
  return true;
}

void PythonLiteral::expect(char token) {
  if (!accept(token)) fail_here(fmt::format("'{}'", token));
}

void PythonLiteral::expect_end() {
  skip_space();
  if (!at_end()) fail_here("nothing more");
}

std::string_view PythonLiteral::string() {
  const char quote = accept('\'') ? '\'' : '"';
  if (quote == '"' && !accept('"')) fail_here("a string");
  const size_t begin = at_;
  while (!at_end() && text_[at_] != quote) {
    if (text_[at_] == '\\' || text_[at_] == '\n') fail_here("a string without escapes");
    ++at_;
  }
  if (at_end()) fail_here("the end of a string");
  return text_.substr(begin, at_++ - begin);
}

bool PythonLiteral::boolean() {
  skip_space();
  for (const auto& [word, value] :
       {std::pair{std::string_view("True"), true}, std::pair{std::string_view("False"), false}}) {
    if (text_.substr(at_).starts_with(word)) {
      at_ += word.size();
      return value;
    }
  }
  fail_here("True or False");
}

int64_t PythonLiteral::integer() {
  skip_space();
  const size_t begin = at_;
  int64_t value = 0;
  while (!at_end() && is_digit(text_[at_])) {
    const int64_t digit = text_[at_] - '0';
    if (value > (INT64_MAX - digit) / 10) fail(static_cast<int64_t>(begin), "a number that is too large for any array");
    value = value * 10 + digit;
    ++at_;
  }
  if (at_ == begin) fail_here("a number of at least 0");
  if (!at_end() && text_[at_] == 'L') ++at_;
  return value;
}

std::vector<int64_t> PythonLiteral::integer_tuple() {
  std::vector<int64_t> values;
  expect('(');
  while (!accept(')')) {
    values.push_back(integer());
    if (accept(',')) continue;
    if (values.size() == 1) fail_here("','");  // (3) is a number to Python, only (3,) is a tuple
    expect(')');
    break;
  }
  return values;
}

std::string_view PythonLiteral::brackets() {
  const size_t begin = at_;
  int64_t depth = 0;
  do {
    skip_space();
    if (at_end()) fail_here("a closing bracket");
    const char c = text_[at_];
    if (c == '\'' || c == '"') {
      string();
      continue;
    }
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    ++at_;
  } while (depth > 0);
  return text_.substr(begin, at_ - begin);
}

std::string_view PythonLiteral::string_or_brackets() {
  skip_space();
  if (!at_end() && (text_[at_] == '(' || text_[at_] == '[')) return brackets();
  return string();
}

void PythonLiteral::fail(int64_t offset, std::string_view reason) const { throw_corrupt(path_, offset, reason); }

void PythonLiteral::fail_here(std::string_view expected) {
  const std::string found = at_end() ? "its end" : fmt::format("'{}'", printable(text_.substr(at_, 1)));
  fail(static_cast<int64_t>(at_), fmt::format("{} was expected in the header, not {}", expected, found));
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 60;
  std::string shown(text.substr(0, kLongest));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  if (text.size() > kLongest) shown += "...";
  return shown;
}

}  // namespace kith
