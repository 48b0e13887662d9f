// A segment on a device as the arrays that kernels work on.
#pragma once

#include "ivf/segment/device_segment.hpp"
#include "ivf/segment/merge_lists_cuda.hpp"

namespace kith {

inline ListArrays arrays_of(const DeviceSegment& segment) {
  return {segment.offsets(), segment.codes(), segment.rows(), segment.size()};
}

}  // namespace kith
