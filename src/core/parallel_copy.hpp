// Copies large blocks with all threads: one thread reaches a fraction of the memory bandwidth, and waits for each page
// that is written for the first time.
#pragma once

#include <kith/resources.hpp>

#include <cstdint>

namespace kith {

void copy_bytes(void* to, const void* from, int64_t bytes, const Resources& resources);

}  // namespace kith
