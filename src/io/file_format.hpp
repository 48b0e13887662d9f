// Which format a file has: its name's ending says, in lower case.
#pragma once

#include "io/element_type.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kith {

enum class FileFormat : uint8_t { fbin, u8bin, ibin, npy };

// Throws InvalidArgument, listing the known endings.
FileFormat format_of(const std::string& path);

// ".fbin", ...
std::string_view ending_of(FileFormat format);

// What the format holds; nothing for .npy, where the header says.
std::optional<ElementType> element_of(FileFormat format);

}  // namespace kith
