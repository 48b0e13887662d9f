// The samples of a join, NEW ones first, the slots for the nearest of each, and the size of a join.
//
// A slot holds the nearest sample found for a sample: the nearest NEW or OLD one of a NEW sample, or the nearest NEW
// one of an OLD sample. In a merge NEW samples only meet OLD ones, and each sample has one slot.
#pragma once

#include "core/host_device.hpp"

#include <cstdint>

namespace kith {

struct JoinCounts {
  int fresh = 0;  // NEW
  int old = 0;

  KITH_HOST_DEVICE constexpr int all() const { return fresh + old; }
  // Whether any samples meet; `across`: in a merge, where NEW samples only meet OLD ones.
  KITH_HOST_DEVICE constexpr bool meet(bool across) const { return fresh > 0 && (old > 0 || (!across && fresh > 1)); }
  KITH_HOST_DEVICE constexpr int pairs(bool across) const {
    return (across ? 0 : fresh * (fresh - 1) / 2) + fresh * old;
  }
  // Both in one word, as passed between kernels; neither is above 2^16.
  KITH_HOST_DEVICE constexpr uint32_t packed() const {
    return static_cast<uint32_t>(fresh) | static_cast<uint32_t>(old) << 16;
  }
};
KITH_HOST_DEVICE constexpr JoinCounts unpack_counts(uint32_t packed) {
  return {static_cast<int>(packed & 0xFFFFu), static_cast<int>(packed >> 16)};
}

struct JoinSlots {
  JoinCounts counts;
  int apart = 0;  // number of slots of NEW samples for NEW ones, which come first

  KITH_HOST_DEVICE constexpr JoinSlots(JoinCounts met, bool across) : counts(met), apart(across ? 0 : met.fresh) {}

  KITH_HOST_DEVICE constexpr int count() const { return apart + counts.all(); }
  // The slot of a NEW sample for its nearest of the kind of `other`.
  KITH_HOST_DEVICE constexpr int new_slot(int sample, int other) const {
    return other < counts.fresh ? sample : apart + sample;
  }
  KITH_HOST_DEVICE constexpr int old_slot(int sample) const { return apart + sample; }
  // The slot of any sample for its nearest NEW one.
  KITH_HOST_DEVICE constexpr int slot_for_new(int sample) const {
    return sample < counts.fresh ? sample : old_slot(sample);
  }
  // The sample that a slot belongs to.
  KITH_HOST_DEVICE constexpr int sample_of(int slot) const { return slot < apart ? slot : slot - apart; }

  // The most slots of a join with up to 2 p samples of each kind.
  KITH_HOST_DEVICE static constexpr int64_t most(int64_t p) { return 6 * p; }
};

// The size of a join: small ones are processed by one or two warps (small_join_cuda.cu). A join compares two sets of
// samples: in a merge NEW with OLD ones, the smaller set being the rows of the product; otherwise NEW ones with all
// samples.
struct JoinShape {
  int first_row = 0;
  int rows = 0;
  int first_column = 0;
  int columns = 0;
};

KITH_HOST_DEVICE constexpr JoinShape shape_of(const JoinCounts& counts, bool across) {
  if (!across) return {0, counts.fresh, 0, counts.all()};
  if (counts.fresh <= counts.old) return {0, counts.fresh, counts.fresh, counts.old};
  return {counts.fresh, counts.old, 0, counts.fresh};
}

inline constexpr int kSmallColumns = 64;

// Small joins have up to 16 or 32 rows and are processed by one or two warps.
enum class JoinSize : uint8_t { one_warp, two_warps, large };
inline constexpr int kJoinSizes = 3;

KITH_HOST_DEVICE constexpr int small_rows(JoinSize size) { return size == JoinSize::one_warp ? 16 : 32; }
// The most samples, which is also the most slots.
KITH_HOST_DEVICE constexpr int small_samples(JoinSize size) { return kSmallColumns + small_rows(size); }

KITH_HOST_DEVICE constexpr JoinSize size_of(const JoinShape& shape) {
  if (shape.columns > kSmallColumns || shape.rows > small_rows(JoinSize::two_warps)) return JoinSize::large;
  return shape.rows <= small_rows(JoinSize::one_warp) ? JoinSize::one_warp : JoinSize::two_warps;
}

}  // namespace kith
