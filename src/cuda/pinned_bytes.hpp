// The size of the pinned memory through which copies to a GPU pass.
#pragma once

#include <cstdint>

namespace kith {

inline constexpr int64_t kPinnedBytes = int64_t{32} << 20;

}  // namespace kith
