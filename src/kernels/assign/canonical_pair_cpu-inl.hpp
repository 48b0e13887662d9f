// The canonical keys of a row and a centre, or of several pairs at a time. Included once for each instruction set.
#if defined(KITH_KERNELS_ASSIGN_CANONICAL_PAIR_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_ASSIGN_CANONICAL_PAIR_CPU_INL
#undef KITH_KERNELS_ASSIGN_CANONICAL_PAIR_CPU_INL
#else
#define KITH_KERNELS_ASSIGN_CANONICAL_PAIR_CPU_INL
#endif

#include "core/ordered_key.hpp"
#include "kernels/distance/canonical_step_cpu-inl.hpp"
#include "rows/load_cpu-inl.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Vec = hn::Vec<F32>;
constexpr int64_t kFloats = hn::MaxLanes(F32());
constexpr int64_t kLaneVectors = kCanonicalLanes / kDoubles;

// A mask as bits, the first lane's the lowest.
HWY_INLINE uint32_t bits_of(hn::Mask<F32> mask) {
  using Bits = std::conditional_t<(kFloats > 8), uint16_t, uint8_t>;  // matches the stored width
  HWY_ALIGN uint8_t bytes[8];
  hn::StoreMaskBits(F32(), mask, bytes);
  Bits stored;
  std::memcpy(&stored, bytes, sizeof stored);
  return stored & ((1u << kFloats) - 1);
}

// The lower levels of the canonical tree: lanes half a vector apart, then a quarter, ...
template <typename D>
HWY_INLINE double add_halves(D, hn::Vec<D> lanes) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(lanes);
  } else {
    const hn::Half<D> half;
    return add_halves(half, hn::Add(hn::LowerHalf(half, lanes), hn::UpperHalf(half, lanes)));
  }
}

// A row and a centre, in float64 or f32; the centre is padded with zeros. The first `whole` columns of the row, a
// multiple of the canonical lanes, are at `row`; the others, padded with zeros to a set of lanes, at `rest`, or null.
template <typename Value>
struct PairWith {
  const float* row = nullptr;
  const float* rest = nullptr;
  const Value* few = nullptr;
};
using CanonicalPair = PairWith<double>;

HWY_INLINE Doubles load_centre(const double* from) { return hn::LoadU(F64(), from); }
HWY_INLINE Doubles load_centre(const float* from) { return load_doubles(from); }

// Pairs computed together, to hide the latency of the additions.
constexpr int kPairsTogether = kLaneVectors <= 2 ? 4 : kLaneVectors <= 4 ? 2 : 1;

// The canonical keys of some pairs.
template <KeyKind kKind, int kPairs, typename Value>
HWY_INLINE void canonical_of(const PairWith<Value>* pairs, int64_t whole, float* keys) {
  Doubles lanes[kPairs][kLaneVectors];
#pragma GCC unroll 4
  for (auto& own : lanes) {
#pragma GCC unroll 16
    for (auto& lane : own) lane = hn::Zero(F64());
  }
  for (int64_t c = 0; c < whole; c += kCanonicalLanes) {
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 16
      for (int64_t v = 0; v < kLaneVectors; ++v) {
        const auto a = load_doubles(pairs[p].row + c + v * kDoubles);
        lanes[p][v] = step_lanes<kKind>(lanes[p][v], a, load_centre(pairs[p].few + c + v * kDoubles));
      }
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPairs; ++p) {
    if (pairs[p].rest != nullptr) {
#pragma GCC unroll 16
      for (int64_t v = 0; v < kLaneVectors; ++v) {
        const auto a = load_doubles(pairs[p].rest + v * kDoubles);
        lanes[p][v] = step_lanes<kKind>(lanes[p][v], a, load_centre(pairs[p].few + whole + v * kDoubles));
      }
    }
    // Vectors whole lanes apart are added as vectors: the tree's first levels.
#pragma GCC unroll 4
    for (int64_t vectors = kLaneVectors; vectors > 1; vectors /= 2) {
#pragma GCC unroll 8
      for (int64_t v = 0; v < vectors / 2; ++v) lanes[p][v] = hn::Add(lanes[p][v], lanes[p][v + vectors / 2]);
    }
    keys[p] = canonical_key<kKind>(add_halves(F64(), lanes[p][0]), 0, 0);
  }
}

template <KeyKind kKind, typename Value>
HWY_INLINE float canonical_of(const PairWith<Value>& pair, int64_t whole) {
  float key;
  canonical_of<kKind, 1>(&pair, whole, &key);
  return key;
}

// Reported keys of any number of pairs.
template <KeyKind kKind>
HWY_INLINE void canonical_of_all(const CanonicalPair* pairs, int64_t count, int64_t whole, float* keys) {
  int64_t p = 0;
  for (; p + kPairsTogether <= count; p += kPairsTogether) {
    canonical_of<kKind, kPairsTogether>(pairs + p, whole, keys + p);
  }
  for (; p < count; ++p) keys[p] = canonical_of<kKind>(pairs[p], whole);
  for (p = 0; p < count; ++p) keys[p] = key_of_ordered(ordered_key(keys[p]));
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#endif
