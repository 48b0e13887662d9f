// .fvecs, .bvecs and .ivecs, the formats of the TEXMEX collections: every row is its number of columns, a little-endian
// int32, and then its values. There is no other header, so an empty file has neither rows nor columns.
//
// The first row says how long all are. Opening compares the file's size and the last row with it; the rows between are
// checked when they are read.
#pragma once

#include "io/value_reader.hpp"

#include <string>
#include <string_view>

namespace kith {

inline constexpr int64_t kVecsRowHeaderBytes = 4;

// `head` is how a file of `size` bytes begins: its first four, or all of it if it is shorter.
FileLayout parse_vecs_header(std::string_view head, int64_t size, ElementType element, const std::string& path);

OpenedMatrix open_vecs(OpenedFile opened, ElementType element, const std::string& path);

}  // namespace kith
