// A random orthonormal matrix: Gaussian rows made orthonormal. The same bits for a seed on every machine.
#pragma once

#include <kith/resources.hpp>

#include "core/random.hpp"
#include "transform/dense.hpp"

#include <cstdint>

namespace kith {

// The i-th pair of normal numbers: by Marsaglia's polar method, with a logarithm of our own, as those of C libraries
// differ in the last bit.
struct NormalPair {
  double first = 0;
  double second = 0;
};
NormalPair normal_pair(const CounterRng& rng, uint64_t i);

// out x in. With out <= in its rows are orthonormal, else its columns, so that lengths are kept.
Dense random_rotation(int64_t in, int64_t out, uint64_t seed, const Resources& resources);

}  // namespace kith
