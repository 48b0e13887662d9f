// How errors about files are worded: the file first, then where in it, then the reason and the way out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kith {

// IoError "cannot <action> '<path>': <the system's words for errno>".
[[noreturn]] void throw_io_error(std::string_view action, const std::string& path, int code);

// CorruptFile "'<path>', byte <offset>: <reason>".
[[noreturn]] void throw_corrupt(const std::string& path, int64_t offset, std::string_view reason);

// InvalidArgument of the same form: the file is sound, but holds what Kith does not take.
[[noreturn]] void throw_refused(const std::string& path, int64_t offset, std::string_view reason);

// Text from a file as it can stand in a message: short, and without control characters.
std::string printable(std::string_view text);

}  // namespace kith
