// Sorts packed neighbours (core/ordered_key.hpp): many of them digit by digit, which takes a tenth of the time of
// comparing them.
//
// The rows' digits first, of up to 13 bits, unless they ascend already; then those of the keys less the smallest.
// Cost: a pass for each digit, at most six, and three more; as much memory again.
#pragma once

#include <cstdint>

namespace kith {

// From so many on digits pay; fewer are compared.
inline constexpr int64_t kFewestToSortByDigits = 1024;

// `scratch` holds `count` too, or is null: then they are compared, however many.
void sort_neighbors(uint64_t* neighbors, int64_t count, uint64_t* scratch);

}  // namespace kith
