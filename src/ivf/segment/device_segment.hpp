// A segment of inverted lists in a GPU's memory: the arrays of list_segment.hpp, there. Made from rows
// (code_rows_cuda.hpp), from a segment on the host, or of several by merging. No CUDA types; without CUDA every function
// is Unsupported. All functions return when their result is complete.
//
// Memory: code bytes + 4 for each vector and 8 for each list; while segments are merged both they and the result.
#pragma once

#include <kith/resources.hpp>

#include "core/slot.hpp"
#include "ivf/segment/list_segment.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// A segment's arrays on a device.
struct ListArrays {
  int64_t* offsets = nullptr;  // lists + 1
  uint8_t* codes = nullptr;
  uint32_t* rows = nullptr;
  int64_t count = 0;  // of vectors
};

class DeviceSegment {
 public:
  // Room for so many vectors; what is in it comes later.
  DeviceSegment(int device, int64_t lists, int64_t size, int64_t code_bytes, const Resources& resources);

  int device() const { return device_; }
  int64_t lists() const { return lists_; }
  int64_t size() const { return size_; }
  int64_t code_bytes() const { return code_bytes_; }
  int64_t bytes() const { return bytes_; }
  // On the device.
  int64_t* offsets() const { return offsets_.in(memory_.get()); }  // lists + 1
  uint8_t* codes() const { return codes_.in(memory_.get()); }
  uint32_t* rows() const { return rows_.in(memory_.get()); }
  ListArrays arrays() const { return {offsets(), codes(), rows(), size_}; }

 private:
  int device_;
  int64_t lists_;
  int64_t size_;
  int64_t code_bytes_;
  Slot<int64_t> offsets_;
  Slot<uint8_t> codes_;
  Slot<uint32_t> rows_;
  int64_t bytes_;
  std::shared_ptr<std::byte> memory_;
};

using SegmentThere = std::shared_ptr<const DeviceSegment>;

SegmentThere upload_segment(int device, const ListSegment& segment, const Resources& resources);
Segment download_segment(const DeviceSegment& segment, const Resources& resources);
HostArray<int64_t> download_offsets(const DeviceSegment& segment, const Resources& resources);

// One segment of several, on one device and in the order of their rows.
SegmentThere merge_on_device(const std::vector<SegmentThere>& segments, const Resources& resources);

// As without() of list_segment.hpp, for an index of so many rows, some of which are left out.
SegmentThere without_on_device(const DeviceSegment& segment, const KeptRows& kept, int64_t rows,
                               const Resources& resources);

}  // namespace kith
