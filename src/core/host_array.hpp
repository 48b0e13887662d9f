// What arrays in host memory take, beside the arrays themselves (HostArray). One that is only counted
// (core/footprint.hpp) has a size, but nothing from begin() to end().
#pragma once

#include <kith/host_buffer.hpp>

#include "core/memory_budget.hpp"

#include <cstdint>

namespace kith {

// What `count` of them take, for plans.
template <typename T>
constexpr int64_t array_bytes(int64_t count) {
  return count * static_cast<int64_t>(sizeof(T));
}

}  // namespace kith
