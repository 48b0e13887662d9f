// IDX, the format of MNIST and its relatives: two zero bytes, a type, the number of axes, their lengths as big-endian
// uint32, then the values. The first axis counts rows; the others are flattened into columns. Files of bytes (u8, i8)
// are taken, plain or in gzip, which the first bytes tell.
//
// A compressed file is unpacked as it is read: going forward costs the unpacking once, going back begins anew. It takes
// no memory in proportion to the file. Reads from several threads wait for each other.
#pragma once

#include "io/value_reader.hpp"

#include <string>
#include <string_view>

namespace kith {

// The longest header that is taken: four axes.
inline constexpr int64_t kIdxHeadLimit = 4 + 4 * 4;

// `head` is how the content begins: its first kIdxHeadLimit bytes, or all of it if it is shorter.
FileLayout parse_idx_header(std::string_view head, const std::string& path);

OpenedMatrix open_idx(OpenedFile opened, const std::string& path);

}  // namespace kith
