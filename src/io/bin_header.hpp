// The header of .fbin, .f16bin, .bf16bin, .u8bin, .i8bin and .ibin: rows and columns, each a little-endian uint32; the
// values follow.
#pragma once

#include "io/file_layout.hpp"

#include <string>
#include <string_view>

namespace kith {

inline constexpr int64_t kBinHeaderBytes = 8;

// `head` is how the file begins, all of it if it is shorter than a header. `path` is for the errors alone.
FileLayout parse_bin_header(std::string_view head, ElementType element, const std::string& path);

// Throws InvalidArgument for a shape that uint32 cannot hold.
std::string make_bin_header(int64_t rows, int64_t cols, const std::string& path);

}  // namespace kith
