// Integer keys of codes with one query (as in byte_keys_cpu.hpp), by a warp: eight threads per code, 16-byte loads,
// multiply-adds of four bytes, several codes in flight. Walks compare queries with places this way, and graph builds
// places with places.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/warp.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kCodeThreads = 8;                  // threads per code
inline constexpr int kCodesOfWarp = 32 / kCodeThreads;  // codes per pass
inline constexpr int kCodesAhead = 4;                   // passes in flight

struct CodeQueryCuda {
  const uint4* values = nullptr;  // aligned; bytes, or 16-bit words if a value does not fit a byte
  bool bytes = true;
  bool products = false;
  uint32_t norm = 0;  // squared; 0 for inner products
};

// Contiguous codes of `chunks` x 16 bytes; packed ones have 32 columns per chunk
// (kernels/distance/nibble_keys_cpu.hpp).
struct CodesCuda {
  const int8_t* data = nullptr;
  int chunks = 0;

  __device__ const uint4* code(uint32_t number) const {
    return reinterpret_cast<const uint4*>(data) + int64_t{number} * chunks;
  }
};

// Four times four bytes times four bytes.
KITH_DEVICE_INLINE int multiply_bytes(const uint4& a, const uint4& b) {
  int sum = __dp4a(static_cast<int>(a.x), static_cast<int>(b.x), 0);
  sum = __dp4a(static_cast<int>(a.y), static_cast<int>(b.y), sum);
  sum = __dp4a(static_cast<int>(a.z), static_cast<int>(b.z), sum);
  return __dp4a(static_cast<int>(a.w), static_cast<int>(b.w), sum);
}

// Four times four bytes times four words.
KITH_DEVICE_INLINE int multiply_words(const uint4& code, const uint4& low, const uint4& high) {
  const uint32_t x[4] = {code.x, code.y, code.z, code.w};
  const uint32_t q[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  int product = 0;
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) {
    product = __dp2a_lo(static_cast<int>(q[2 * i]), static_cast<int>(x[i]), product);
    product = __dp2a_hi(static_cast<int>(q[2 * i + 1]), static_cast<int>(x[i]), product);
  }
  return product;
}

// The contribution of 16 columns to a key: the code's square minus twice the product with the query, or minus the
// product.
KITH_DEVICE_INLINE uint32_t part_of_code_key(const uint4& code, const uint4& low, const uint4& high, bool bytes,
                                             bool products) {
  int product = 0;
  if (bytes) {
    product = multiply_bytes(code, low);
  } else {
    product = multiply_words(code, low, high);
  }
  if (products) return 0U - static_cast<uint32_t>(product);
  return static_cast<uint32_t>(multiply_bytes(code, code)) - 2U * static_cast<uint32_t>(product);
}

// Twice the bytes that the nibbles of packed bytes represent.
KITH_DEVICE_INLINE uint4 lower_halves(const uint4& packed) {
  constexpr uint32_t kMask = 0xF0F0F0F0U;
  return make_uint4(packed.x << 4 & kMask, packed.y << 4 & kMask, packed.z << 4 & kMask, packed.w << 4 & kMask);
}
KITH_DEVICE_INLINE uint4 upper_halves(const uint4& packed) {
  constexpr uint32_t kMask = 0xF0F0F0F0U;
  return make_uint4(packed.x & kMask, packed.y & kMask, packed.z & kMask, packed.w & kMask);
}

// The same for the 32 columns of a packed chunk, computed from twice the code's bytes: a quarter of the square minus
// the product, or minus half of the product.
KITH_DEVICE_INLINE uint32_t part_of_packed_key(const uint4& packed, const CodeQueryCuda& query, int chunk) {
  const uint4 lower = lower_halves(packed);
  const uint4 upper = upper_halves(packed);
  int product = 0;
  if (query.bytes) {
    product = multiply_bytes(lower, query.values[2 * chunk]) + multiply_bytes(upper, query.values[2 * chunk + 1]);
  } else {
    const uint4* const words = query.values + 4 * chunk;
    product = multiply_words(lower, words[0], words[1]) + multiply_words(upper, words[2], words[3]);
  }
  if (query.products) return 0U - static_cast<uint32_t>(product / 2);
  const int square = multiply_bytes(lower, lower) + multiply_bytes(upper, upper);
  return static_cast<uint32_t>(square / 4) - static_cast<uint32_t>(product);
}

// Adds up the sums of the kCodeThreads lanes that share codes. In each step a lane passes half of its sums to a partner
// and keeps the other half, so four sums take four shuffles instead of twelve. Returns which sum is in sums[0].
template <int kSums>
KITH_DEVICE_INLINE int sum_by_halves(uint32_t (&sums)[kSums]) {
  int own = 0;
  int have = kSums;
  KITH_UNROLL
  for (int apart = kCodeThreads / 2; apart > 0; apart /= 2) {
    if (have == 1) {
      sums[0] += __shfl_xor_sync(kAllLanes, sums[0], apart);
      continue;
    }
    have /= 2;
    const bool upper = (lane_index() & apart) != 0;
    KITH_UNROLL
    for (int i = 0; i < kSums / 2; ++i) {
      if (i >= have) break;
      const uint32_t given = upper ? sums[i] : sums[i + have];
      sums[i] = (upper ? sums[i + have] : sums[i]) + __shfl_xor_sync(kAllLanes, given, apart);
    }
    own += upper ? have : 0;
  }
  return own;
}

// Calls use(true, i, number, key) for `count` codes, numbered number_of(0), number_of(1), ..., each on one lane of the
// warp, and use(false, ...) on the other lanes. Keys are signed integers with the sign bit flipped, to be compared as
// unsigned. Called by all lanes. kPacked: codes are packed; otherwise the loop has no code for that.
template <int kAhead = kCodesAhead, bool kPacked = false, typename NumberOf, typename Use>
KITH_DEVICE_INLINE void compare_codes(const CodeQueryCuda& query, const CodesCuda& codes, int count,
                                      const NumberOf& number_of, const Use& use) {
  constexpr uint32_t kNone = 0xFFFFFFFFU;
  constexpr uint32_t kTurnedSign = 0x80000000U;
  const int group = lane_index() / kCodeThreads;
  const int part = lane_index() % kCodeThreads;
#pragma unroll 1
  for (int first = 0; first < count; first += kCodesOfWarp * kAhead) {
    uint32_t numbers[kAhead];
    uint32_t sums[kAhead] = {};
    KITH_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      const int n = first + i * kCodesOfWarp + group;
      numbers[i] = n < count ? number_of(n) : kNone;
    }
#pragma unroll 1
    for (int chunk = part; chunk < codes.chunks; chunk += kCodeThreads) {
      uint4 loaded[kAhead] = {};
      KITH_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        if (numbers[i] != kNone) loaded[i] = __ldg(codes.code(numbers[i]) + chunk);
      }
      if constexpr (kPacked) {
        KITH_UNROLL
        for (int i = 0; i < kAhead; ++i) sums[i] += part_of_packed_key(loaded[i], query, chunk);
      } else {
        const uint4 low = query.bytes ? query.values[chunk] : query.values[2 * chunk];
        const uint4 high = query.bytes ? low : query.values[2 * chunk + 1];
        KITH_UNROLL
        for (int i = 0; i < kAhead; ++i) sums[i] += part_of_code_key(loaded[i], low, high, query.bytes, query.products);
      }
    }
    const int own = sum_by_halves(sums);
    uint32_t number = numbers[0];
    KITH_UNROLL
    for (int i = 1; i < kAhead; ++i) number = own == i ? numbers[i] : number;
    const bool there = part % (kCodeThreads / kAhead) == 0 && number != kNone;
    use(there, first + own * kCodesOfWarp + group, number, (sums[0] + query.norm) ^ kTurnedSign);
  }
}

// The squared norm of a code, returned on all lanes.
KITH_DEVICE_INLINE uint32_t squared_norm_of(const CodesCuda& codes, uint32_t number) {
  uint32_t norm = 0;
  for (int chunk = lane_index(); chunk < codes.chunks; chunk += 32) {
    const uint4 some = __ldg(codes.code(number) + chunk);
    norm += static_cast<uint32_t>(multiply_bytes(some, some));
  }
  return warp_sum(norm);
}

// A place's code as the query, by squared distance. Called by all lanes.
KITH_DEVICE_INLINE CodeQueryCuda code_as_query(const CodesCuda& codes, uint32_t number) {
  return {codes.code(number), true, false, squared_norm_of(codes, number)};
}

}  // namespace kith
