// A warp copies the codes of 32 vectors, each from one place to another: neighbouring lanes take neighbouring units, so
// that reads and writes are as wide as codes allow.
#pragma once

#include "cuda/vector_access.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Lane i knows where vector i comes from and goes to; `count` of them are real. All lanes take part.
template <typename Unit>
__device__ inline void copy_codes(const uint8_t* from, uint8_t* to, int64_t code_bytes, int64_t from_place,
                                  int64_t to_place, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto units = static_cast<int>(code_bytes / static_cast<int64_t>(sizeof(Unit)));
  const Unit* const source = vectors<Unit>(from);
  Unit* const target = vectors<Unit>(to);
  for (int base = 0; base < count * units; base += 32) {
    const int at = base + lane;
    const int vector = at / units;
    const int64_t here = __shfl_sync(0xFFFFFFFFu, from_place, vector % 32);
    const int64_t there = __shfl_sync(0xFFFFFFFFu, to_place, vector % 32);
    if (vector < count) target[there * units + at % units] = source[here * units + at % units];
  }
}

// Calls use(Unit()) with the widest unit that codes, which begin at multiples of 16 bytes, are made of.
template <typename Use>
void visit_code_unit(int64_t code_bytes, const Use& use) {
  if (code_bytes % 16 == 0) {
    use(uint4());
  } else if (code_bytes % 4 == 0) {
    use(uint32_t());
  } else {
    use(uint8_t());
  }
}

}  // namespace kith
