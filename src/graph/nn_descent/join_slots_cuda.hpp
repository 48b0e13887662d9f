// How the samples of a join lie, and where the nearest of each are looked for.
//
// NEW samples come first; OLD ones begin at a multiple of eight, so that the eight columns of a product that a thread's
// neighbours hold are of one kind. Places between are nobody's.
//
// A slot is where the nearest of a sample is looked for, 2 p of each kind: the nearest NEW one of a NEW sample, its
// nearest OLD one, the nearest NEW one of an OLD sample.
#pragma once

#include "core/host_device.hpp"

namespace kith {

inline constexpr int kSampleGroup = 8;

struct JoinCounts {
  int fresh = 0;  // NEW
  int old = 0;

  KITH_HOST_DEVICE constexpr int first_old() const { return (fresh + kSampleGroup - 1) / kSampleGroup * kSampleGroup; }
  KITH_HOST_DEVICE constexpr int end() const { return first_old() + old; }
  KITH_HOST_DEVICE constexpr bool is_sample(int place) const {
    return place < fresh || (place >= first_old() && place < end());
  }
  // Whether anybody meets; `across`: in a merge, where NEW ones meet OLD ones alone.
  KITH_HOST_DEVICE constexpr bool meet(bool across) const { return fresh > 0 && (old > 0 || (!across && fresh > 1)); }
  KITH_HOST_DEVICE constexpr int pairs(bool across) const {
    return (across ? 0 : fresh * (fresh - 1) / 2) + fresh * old;
  }
};

// Places for the samples of a join by p.
KITH_HOST_DEVICE constexpr int sample_places(int p) { return 4 * p + kSampleGroup; }

struct JoinSlots {
  int p = 0;
  JoinCounts counts;

  KITH_HOST_DEVICE constexpr int count() const { return 6 * p; }
  // Of a NEW sample, for its nearest of the kind of `other`.
  KITH_HOST_DEVICE constexpr int new_slot(int sample, bool other_old) const { return other_old ? 2 * p + sample : sample; }
  KITH_HOST_DEVICE constexpr int old_slot(int sample) const { return 4 * p + sample - counts.first_old(); }
  // Of any sample, for its nearest NEW one.
  KITH_HOST_DEVICE constexpr int slot_for_new(int sample) const {
    return sample < counts.fresh ? sample : old_slot(sample);
  }
  // Whether it is a sample's, and whose.
  KITH_HOST_DEVICE constexpr bool is_slot(int slot) const {
    return slot < 4 * p ? slot - (slot < 2 * p ? 0 : 2 * p) < counts.fresh : slot - 4 * p < counts.old;
  }
  KITH_HOST_DEVICE constexpr int sample_of(int slot) const {
    return slot < 2 * p ? slot : slot < 4 * p ? slot - 2 * p : counts.first_old() + slot - 4 * p;
  }
};

}  // namespace kith
