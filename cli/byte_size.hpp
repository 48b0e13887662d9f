// Byte counts as people type them: "512M", "1.5G", "2GiB", "100000". Units are powers of 1024.
#pragma once

#include <cstdint>
#include <string_view>

namespace kith::cli {

// InvalidArgument that names `option`.
int64_t parse_byte_size(std::string_view text, std::string_view option);

}  // namespace kith::cli
