// How a block of two warpgroups cuts a scan of lists, and the queries in its shared memory, the right operand of their
// products.
#pragma once

#include "cuda/ptx_hopper.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/scan_engines_cuda.hpp"
#include "ivf/scan/scan_units.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

inline constexpr int kGroupThreads = 128;
inline constexpr int kGroups = 2;      // of a block
inline constexpr int kGroupRows = 64;   // of a warpgroup at a time
inline constexpr int kWarpRows = 16;   // of these
inline constexpr int kQueryChunkSteps = 4;  // of 16 halves in a row of 128 bytes
inline constexpr int kQueryRowBytes = 128;
inline constexpr int kQueryChunkBytes = kNarrowQueries * kQueryRowBytes;

// The queries' halves, as the matrix units read them: rows of 128 bytes, four steps each, in units of 16 bytes that are
// swizzled by the row's number modulo 8. Of a step's 16 halves a quarter has two in either unit.
class WarpgroupOperands {
 public:
  __device__ WarpgroupOperands(std::byte* data, int steps, UnitOrder order)
      : data_(data), steps_(steps), order_(order) {}

  __device__ int steps() const { return steps_; }
  __device__ void store(int unit, int place, uint2 halves) const {
    const int step = step_of_unit(order_, unit);
    std::byte* const row =
        data_ + step / kQueryChunkSteps * kQueryChunkBytes + place * kQueryRowBytes + 4 * quarter_of_unit(order_, unit);
    const int sixteen = step % kQueryChunkSteps * 2;
    store_vector(row + 16 * (sixteen ^ (place % 8)), halves.x);
    store_vector(row + 16 * ((sixteen + 1) ^ (place % 8)), halves.y);
  }
  __device__ void fence() const { ptx::shared_writes_fence(); }

  // Of one step, from query `first` on, a multiple of eight. Only the lower half of a descriptor has the address.
  __device__ uint64_t descriptor(uint32_t start, int first, int step) const {
    constexpr uint64_t kUpper = uint64_t{0x40000040} << 32;
    const int bytes = step / kQueryChunkSteps * kQueryChunkBytes + step % kQueryChunkSteps * 32;
    return kUpper | (start + static_cast<uint32_t>(first * (kQueryRowBytes / 16)) + static_cast<uint32_t>(bytes / 16));
  }
  __device__ uint32_t start() const {
    auto low = static_cast<uint32_t>(ptx::operand_descriptor(data_));
    ptx::keep_whole(low);
    return low;
  }

 private:
  std::byte* data_;
  int steps_;
  UnitOrder order_;
};

}  // namespace kith
