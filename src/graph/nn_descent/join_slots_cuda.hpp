// The samples of a join, NEW ones first, and where the nearest of each are looked for.
//
// A slot is where the nearest of a sample is looked for, 2 p of each kind: the nearest NEW one of a NEW sample, its
// nearest OLD one, the nearest NEW one of an OLD sample.
#pragma once

#include "core/host_device.hpp"

namespace kith {

struct JoinCounts {
  int fresh = 0;  // NEW
  int old = 0;

  KITH_HOST_DEVICE constexpr int all() const { return fresh + old; }
  // Whether anybody meets; `across`: in a merge, where NEW ones meet OLD ones alone.
  KITH_HOST_DEVICE constexpr bool meet(bool across) const { return fresh > 0 && (old > 0 || (!across && fresh > 1)); }
  KITH_HOST_DEVICE constexpr int pairs(bool across) const {
    return (across ? 0 : fresh * (fresh - 1) / 2) + fresh * old;
  }
};

struct JoinSlots {
  int p = 0;
  JoinCounts counts;

  KITH_HOST_DEVICE constexpr int count() const { return 6 * p; }
  // Of a NEW sample, for its nearest of the kind of `other`.
  KITH_HOST_DEVICE constexpr int new_slot(int sample, int other) const {
    return other < counts.fresh ? sample : 2 * p + sample;
  }
  KITH_HOST_DEVICE constexpr int old_slot(int sample) const { return 4 * p + sample - counts.fresh; }
  // Of any sample, for its nearest NEW one.
  KITH_HOST_DEVICE constexpr int slot_for_new(int sample) const {
    return sample < counts.fresh ? sample : old_slot(sample);
  }
  // The sample whose slot it is; nobody's where it is counts.all().
  KITH_HOST_DEVICE constexpr int sample_of(int slot) const {
    const int sample = slot < 2 * p ? slot : slot < 4 * p ? slot - 2 * p : counts.fresh + slot - 4 * p;
    return sample < (slot < 4 * p ? counts.fresh : counts.all()) ? sample : counts.all();
  }
};

}  // namespace kith
