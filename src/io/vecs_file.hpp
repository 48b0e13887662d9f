// .fvecs, .bvecs and .ivecs, the formats of the TEXMEX collections: every row is its number of columns, a little-endian
// int32, and then its values. There is no other header, so an empty file has neither rows nor columns.
//
// The first row says how long all are. Opening compares the file's size and the last row with it; the rows between are
// checked when they are read.
#pragma once

#include "io/file_layout.hpp"
#include "io/value_reader.hpp"

#include <string>
#include <string_view>

namespace kith {

inline constexpr int64_t kVecsRowHeaderBytes = 4;

// `head` is how a file of `size` bytes begins: its first four, or all of it if it is shorter.
FileLayout parse_vecs_header(std::string_view head, int64_t size, ElementType element, const std::string& path);

OpenedMatrix open_vecs(OpenedFile opened, ElementType element, const std::string& path);

// The header of .fbin, .f16bin, .bf16bin, .u8bin, .i8bin and .ibin: rows and columns, each a little-endian uint32; the
// values follow.

inline constexpr int64_t kBinHeaderBytes = 8;

// `head` is how the file begins, all of it if it is shorter than a header. `path` is for the errors alone.
FileLayout parse_bin_header(std::string_view head, ElementType element, const std::string& path);

// Throws InvalidArgument for a shape that uint32 cannot hold.
std::string make_bin_header(int64_t rows, int64_t cols, const std::string& path);

}  // namespace kith
