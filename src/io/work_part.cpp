#include <kith/work_part.hpp>

#include <fmt/format.h>

#include <charconv>
#include <string>

namespace kith {
namespace {

[[noreturn]] void refuse_part(std::string_view text) {
  throw InvalidArgument(fmt::format("part = '{}'; give i/n with i from 1 to n, as 2/3", text));
}

int64_t number_in(std::string_view digits, std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) refuse_part(text);
  return number;
}

}  // namespace

void WorkPart::validate() const {
  if (number < 1 || number > count) refuse_part(fmt::format("{}/{}", number, count));
}

WorkPart parse_work_part(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) refuse_part(text);
  const WorkPart part{number_in(text.substr(0, slash), text), number_in(text.substr(slash + 1), text)};
  part.validate();
  return part;
}

}  // namespace kith
