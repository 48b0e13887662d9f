// Whether bytes of a container have the hash that it states. In the fuzz targets every stored hash matches: a fuzzer
// could not guess a right one, and nothing behind would ever be reached.
#pragma once

#include <cstdint>

namespace kith {

bool matches_section_hash(uint64_t computed, uint64_t stored);

}  // namespace kith
