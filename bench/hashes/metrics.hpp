// A metric of the caller's own, for the CPU and for nvcc. Its arithmetic is that of both: no libm, nothing fused.
#pragma once

#if defined(__CUDACC__)
#define HASHES_BOTH __host__ __device__
#else
#define HASHES_BOTH
#endif

namespace hashes {

struct Canberra {
  static constexpr bool symmetric = true;

  HASHES_BOTH static float size_of(float value) { return value < 0 ? -value : value; }
  HASHES_BOTH float init() const { return 0; }
  HASHES_BOTH float step(float sum, float q, float x) const {
    const float size = size_of(q) + size_of(x);
    return size == 0 ? sum : sum + size_of(q - x) / size;
  }
  HASHES_BOTH float finish(float sum) const { return sum; }
};

}  // namespace hashes
