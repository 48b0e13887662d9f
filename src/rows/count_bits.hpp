// How many bits of some words are set, with the vectors of the processor: beside the search of one query a filter of a
// million rows, 16,000 words, is not little.
#pragma once

#include <cstdint>

namespace kith {

int64_t count_bits(const uint64_t* words, int64_t count);

}  // namespace kith
