// What is said of a vector that holds a NaN or an infinity, the same on every device.
#pragma once

#include <cstdint>
#include <string_view>

namespace kith {

// `what` is "query" or "base"; `row` counts from the caller's first.
[[noreturn]] void throw_not_finite(std::string_view what, int64_t row);

}  // namespace kith
