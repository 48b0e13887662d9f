// The header of .npy files, versions 1.0 to 3.0: a magic string, a length, and a Python dictionary as text with the
// keys 'descr' (the dtype), 'fortran_order' and 'shape'.
//
// One axis of bool, uint8, int32 or int64 is a mask or a list of ids: one column. Vectors have two.
//
// The parser takes what numpy writes, in any order of keys, with any white space and either quotes. It reads from
// memory that the caller bounds, so a header that lies about its length costs nothing.
#pragma once

#include "io/file_layout.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kith {

// The longest header that is read. Those of plain matrices have 128 bytes.
inline constexpr int64_t kNpyHeadLimit = 64 * 1024;

// Which arrays of one axis are taken, as one column. Ids, bytes and bools are lists and masks, as numpy makes them; of
// other values it may as well be one vector, unless the caller knows better.
enum class OneAxis : uint8_t { of_lists, of_all };

// `head` is how the file begins: its first kNpyHeadLimit bytes, or all of it if it is shorter. `path` is for the errors
// alone: CorruptFile for what is no .npy header, InvalidArgument for one whose array Kith does not take.
FileLayout parse_npy_header(std::string_view head, const std::string& path, OneAxis one_axis = OneAxis::of_lists);

// A header of version 1.0, padded as numpy does, so that the values begin at a multiple of 64.
std::string make_npy_header(ElementType element, int64_t rows, int64_t cols);

}  // namespace kith
