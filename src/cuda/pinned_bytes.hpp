// How much pinned memory copies to a GPU pass through.
#pragma once

#include <cstdint>

namespace kith {

inline constexpr int64_t kPinnedBytes = int64_t{32} << 20;

}  // namespace kith
