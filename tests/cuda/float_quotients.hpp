// How many of so many pairs of floats have quotients that are not what a division gives: compiled by nvcc.
#pragma once

#include <cstdint>

namespace kith {

enum class QuotientPairs {
  any_bits,   // of every magnitude, numbers below the normal ones included
  neighbors,  // that differ in their last bits
  integers,   // bytes
};

// The first pair that differs goes to `first`: n and s.
uint64_t wrong_float_quotients(QuotientPairs pairs, uint64_t seed, int64_t count, double (&first)[2]);

}  // namespace kith
