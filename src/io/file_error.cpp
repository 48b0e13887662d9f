#include "io/file_error.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace kith {

void throw_io_error(std::string_view action, const std::string& path, int code) {
  throw IoError(fmt::format("cannot {} '{}': {}", action, path, std::generic_category().message(code)), path, code);
}

void throw_corrupt(const std::string& path, int64_t offset, std::string_view reason) {
  throw CorruptFile(fmt::format("'{}', byte {}: {}", path, offset, reason), path, offset);
}

void throw_refused(const std::string& path, int64_t offset, std::string_view reason) {
  throw InvalidArgument(fmt::format("'{}', byte {}: {}", path, offset, reason));
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
