#include "io/formats.hpp"

#include "io/file_error.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kith {
namespace {

constexpr bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A reader of the few Python literals that an .npy header is made of: strings, True and False, tuples of integers, and
// brackets that are skipped whole. Iterative, so that no nesting can exhaust the stack.
class PythonLiteral {
 public:
  // Reads `text` from `offset` on. What it returns points into `text`; what it cannot read is CorruptFile in `path`.
  PythonLiteral(std::string_view text, int64_t offset, const std::string& path)
      : text_(text), at_(static_cast<size_t>(offset)), path_(path) {}

  // Where the next token begins.
  int64_t offset() {
    skip_space();
    return static_cast<int64_t>(at_);
  }
  // Takes `token` if it comes next.
  bool accept(char token) {
    skip_space();
    if (at_end() || text_[at_] != token) return false;
    ++at_;
    return true;
  }
  void expect(char token) {
    if (!accept(token)) fail_here(fmt::format("'{}'", token));
  }
  void expect_end() {
    skip_space();
    if (!at_end()) fail_here("nothing more");
  }

  // In either quotes; without escapes, which no header needs.
  std::string_view string() {
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
  bool boolean() {
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
  // "()", "(3,)", "(3, 4)"; none is negative. A Python 2 header may have an L behind a number.
  std::vector<int64_t> integer_tuple() {
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
  // A string's content, or the text of a list or tuple with its brackets.
  std::string_view string_or_brackets() {
    skip_space();
    if (!at_end() && (text_[at_] == '(' || text_[at_] == '[')) return brackets();
    return string();
  }

  [[noreturn]] void fail(int64_t offset, std::string_view reason) const { throw_corrupt(path_, offset, reason); }

 private:
  void skip_space() {
    while (!at_end() && is_space(text_[at_])) ++at_;
  }
  bool at_end() const { return at_ == text_.size(); }
  int64_t integer() {
    skip_space();
    const size_t begin = at_;
    int64_t value = 0;
    while (!at_end() && is_digit(text_[at_])) {
      const int64_t digit = text_[at_] - '0';
      if (value > (INT64_MAX - digit) / 10)
        fail(static_cast<int64_t>(begin), "a number that is too large for any array");
      value = value * 10 + digit;
      ++at_;
    }
    if (at_ == begin) fail_here("a number of at least 0");
    if (!at_end() && text_[at_] == 'L') ++at_;
    return value;
  }
  std::string_view brackets() {
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
  [[noreturn]] void fail_here(std::string_view expected) {
    const std::string found = at_end() ? "its end" : fmt::format("'{}'", printable(text_.substr(at_, 1)));
    fail(static_cast<int64_t>(at_), fmt::format("{} was expected in the header, not {}", expected, found));
  }

  std::string_view text_;
  size_t at_;
  const std::string& path_;
};

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kVersionAt = kMagic.size();
constexpr size_t kLengthAt = kVersionAt + 2;

// A value of the dictionary, and where it stands.
template <typename T>
struct DictionaryValue {
  T value{};
  int64_t offset = 0;
};

struct NpyDictionary {
  std::optional<DictionaryValue<std::string_view>> descr;
  std::optional<DictionaryValue<bool>> fortran_order;
  std::optional<DictionaryValue<std::vector<int64_t>>> shape;
};

struct HeaderText {
  int64_t offset = 0;
  int64_t length = 0;
};

int64_t byte_at(std::string_view head, size_t i) { return static_cast<unsigned char>(head[i]); }

// Reads magic, version and length, and says where the dictionary's text lies; it is inside `head`.
HeaderText locate_text(std::string_view head, const std::string& path) {
  const auto size = static_cast<int64_t>(head.size());
  if (!head.starts_with(kMagic.substr(0, head.size())))
    throw_corrupt(path, 0, "not an .npy file: it does not begin with \\x93NUMPY");
  if (head.size() < kLengthAt) throw_corrupt(path, size, "the file ends inside its header");

  const int64_t major = byte_at(head, kVersionAt);
  const int64_t minor = byte_at(head, kVersionAt + 1);
  if (major < 1 || major > 3 || minor != 0) {
    throw_corrupt(path, kVersionAt,
                  fmt::format("unknown .npy version {}.{}; known are 1.0, 2.0 and 3.0", major, minor));
  }

  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t text_at = kLengthAt + length_bytes;
  if (head.size() < text_at) throw_corrupt(path, size, "the file ends inside its header");
  int64_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= byte_at(head, kLengthAt + i) << (8 * i);

  const auto offset = static_cast<int64_t>(text_at);
  if (offset + length > kNpyHeadLimit) {
    throw_corrupt(path, kLengthAt,
                  fmt::format("a header of {} bytes; at most {} are read", offset + length, kNpyHeadLimit));
  }
  if (offset + length > size) {
    throw_corrupt(path, size, fmt::format("the file ends inside its header, which has {} bytes", offset + length));
  }
  return {offset, length};
}

NpyDictionary parse_dictionary(PythonLiteral& text) {
  NpyDictionary dictionary;
  text.expect('{');
  while (!text.accept('}')) {
    const int64_t key_offset = text.offset();
    const std::string_view key = text.string();
    text.expect(':');
    const int64_t offset = text.offset();
    bool repeated = false;
    if (key == "descr") {
      repeated = dictionary.descr.has_value();
      dictionary.descr = {text.string_or_brackets(), offset};
    } else if (key == "fortran_order") {
      repeated = dictionary.fortran_order.has_value();
      dictionary.fortran_order = {text.boolean(), offset};
    } else if (key == "shape") {
      repeated = dictionary.shape.has_value();
      dictionary.shape = {text.integer_tuple(), offset};
    } else {
      text.fail(key_offset, fmt::format("unknown key '{}' in the header", printable(key)));
    }
    if (repeated) text.fail(key_offset, fmt::format("the key '{}' appears twice in the header", key));
    if (!text.accept(',')) {
      text.expect('}');
      break;
    }
  }
  text.expect_end();
  return dictionary;
}

constexpr std::string_view kBool = "|b1";

std::string why_refused(std::string_view descr) {
  if (descr.starts_with('[') || descr.starts_with('('))
    return "structured arrays are not supported; save one plain field";
  if (descr == kBool) return "bools are supported as a mask, one row or column; save x.astype('uint8')";
  if (descr.find('O') != std::string_view::npos) return "arrays of Python objects are not supported; save numbers";
  if (descr.starts_with('>')) return "big-endian values are not supported; save x.astype(x.dtype.newbyteorder('<'))";
  if (descr.find('V') != std::string_view::npos) {
    return "raw bytes are not supported; bfloat16 has no dtype in .npy files: save x.astype('float32'), or write "
           ".bf16bin";
  }
  if (descr.size() == 3 && descr[1] == 'f') return "save x.astype('float32'), or let kith convert write it as .fbin";
  return "save vectors as float32, float16, uint8 or int8 and ids as int32 or int64";
}

bool is_of_lists(std::string_view descr) {
  return descr == kBool || descr == "|u1" || descr == "<i4" || descr == "<i8";
}

bool is_one_row_or_column(const std::vector<int64_t>& shape) {
  return shape.size() == 1 || (shape.size() == 2 && (shape[0] == 1 || shape[1] == 1));
}

ElementType element_of(const DictionaryValue<std::string_view>& descr, bool may_be_mask, const std::string& path) {
  if (may_be_mask && descr.value == kBool) return ElementType::u8;
  std::string known;
  for (const ElementTraits& traits : kElementTraits) {
    if (traits.npy_name.empty()) continue;
    if (descr.value == traits.npy_name) return traits.element;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", traits.npy_name);
  }
  throw_refused(path, descr.offset,
                fmt::format("the array's dtype is '{}'; {} (supported are {})", printable(descr.value),
                            why_refused(descr.value), known));
}

}  // namespace

FileLayout parse_npy_header(std::string_view head, const std::string& path, OneAxis one_axis) {
  const HeaderText where = locate_text(head, path);
  PythonLiteral text(head.substr(0, static_cast<size_t>(where.offset + where.length)), where.offset, path);
  const NpyDictionary dictionary = parse_dictionary(text);
  if (!dictionary.descr || !dictionary.fortran_order || !dictionary.shape) {
    throw_corrupt(path, where.offset, "the header lacks one of the keys 'descr', 'fortran_order' and 'shape'");
  }

  const auto& [shape, shape_offset] = *dictionary.shape;
  const ElementType element = element_of(*dictionary.descr, is_one_row_or_column(shape), path);
  if (dictionary.fortran_order->value) {
    throw_refused(path, dictionary.fortran_order->offset,
                  "the array is in Fortran order, column after column; save numpy.ascontiguousarray(x), or let kith "
                  "convert write it as .fbin");
  }
  const bool one_column = shape.size() == 1 && (one_axis == OneAxis::of_all || is_of_lists(dictionary.descr->value));
  if (shape.size() != 2 && !one_column) {
    throw_refused(
        path, shape_offset,
        fmt::format("the array has {} dimensions; supported are 2: rows and columns (x.reshape(rows, columns))",
                    shape.size()));
  }
  const FileLayout layout{element, shape[0], one_column ? 1 : shape[1], where.offset + where.length};
  check_shape(layout, path, shape_offset);
  return layout;
}

std::string make_npy_header(ElementType element, int64_t rows, int64_t cols) {
  constexpr size_t kAlignment = 64;
  constexpr size_t kTextAt = kLengthAt + 2;
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                 traits_of(element).npy_name, rows, cols);
  const size_t used = kTextAt + text.size() + 1;
  text.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  text += '\n';

  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace kith
