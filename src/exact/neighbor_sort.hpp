// Sorts packed neighbours (core/ordered_key.hpp): many of them digit by digit, which takes a tenth of the time of
// comparing them.
//
// Digits of 11 bits, the lowest first; those that all have in common are passed over, and those of the rows where the
// rows ascend already. Cost: one pass for each digit left, at most six, and as much memory again.
#pragma once

#include <cstdint>

namespace kith {

// From so many on digits pay; fewer are compared.
inline constexpr int64_t kFewestToSortByDigits = 1024;

// `scratch` holds `count` too, or is null: then they are compared, however many.
void sort_neighbors(uint64_t* neighbors, int64_t count, uint64_t* scratch);

}  // namespace kith
