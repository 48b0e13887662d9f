// Where the nearest of a join's samples are looked for, 2 p slots of each kind: the nearest NEW one of a NEW sample, its
// nearest OLD one, the nearest NEW one of an OLD sample. Samples lie one after the other, NEW ones first.
#pragma once

#include "core/host_device.hpp"

namespace kith {

struct JoinCounts {
  int fresh = 0;  // NEW
  int all = 0;
};

struct JoinSlots {
  int p = 0;
  JoinCounts counts;

  KITH_HOST_DEVICE constexpr int count() const { return 6 * p; }
  // Of a NEW sample, for its nearest of the kind of `column`.
  KITH_HOST_DEVICE constexpr int new_slot(int row, int column) const { return column < counts.fresh ? row : 2 * p + row; }
  KITH_HOST_DEVICE constexpr int old_slot(int column) const { return 4 * p + column - counts.fresh; }
  // Of any sample, for its nearest NEW one.
  KITH_HOST_DEVICE constexpr int slot_for_new(int sample) const {
    return sample < counts.fresh ? sample : old_slot(sample);
  }
  // The sample whose slot it is; none where it is counts.all.
  KITH_HOST_DEVICE constexpr int sample_of(int slot) const {
    const int sample = slot < 2 * p ? slot : slot < 4 * p ? slot - 2 * p : counts.fresh + slot - 4 * p;
    return sample < (slot < 4 * p ? counts.fresh : counts.all) ? sample : counts.all;
  }
};

}  // namespace kith
