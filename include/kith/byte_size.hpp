// Byte counts as people read them.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <string>

namespace kith {

// "832 B", "1.5 MiB", "12 GiB".
KITH_EXPORT std::string format_bytes(int64_t bytes);
// The same, rounded up.
KITH_EXPORT std::string format_bytes_up(int64_t bytes);

}  // namespace kith
