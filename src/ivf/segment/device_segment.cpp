#include "ivf/segment/device_segment.hpp"

#include "cuda/device_memory.hpp"
#include "cuda/workspace_layout.hpp"

namespace kith {
namespace {

constexpr std::string_view kPurpose = "the lists on the device";

struct SegmentLayout : WorkspaceLayout {
  SegmentLayout(int64_t lists, int64_t size, int64_t code_bytes) {
    offsets = take<int64_t>(lists + 1);
    codes = take<uint8_t>(size, code_bytes);
    rows = take<uint32_t>(size);
  }
  Slot<int64_t> offsets;
  Slot<uint8_t> codes;
  Slot<uint32_t> rows;
};

void upload(const void* from, int64_t bytes, void* to, int device, const Resources& resources) {
  if (bytes == 0) return;
  const MatrixView run(from, DType::u8, {1, bytes, bytes});
  copy_to_device(run, static_cast<std::byte*>(to), device, resources);
}

template <typename T>
HostArray<T> download(const T* from, int64_t count, int device, const Resources& resources) {
  HostArray<T> to(count, "the lists", resources);
  if (count > 0) copy_to_host(from, to.bytes(), device, to.data());
  return to;
}

}  // namespace

DeviceSegment::DeviceSegment(int device, int64_t lists, int64_t size, int64_t code_bytes, const Resources& resources)
    : device_(device), lists_(lists), size_(size), code_bytes_(code_bytes) {
  const SegmentLayout layout(lists, size, code_bytes);
  offsets_ = layout.offsets;
  codes_ = layout.codes;
  rows_ = layout.rows;
  bytes_ = layout.bytes;
  memory_ = allocate_on_device(bytes_, kPurpose, device, resources);
}

SegmentThere upload_segment(int device, const ListSegment& segment, const Resources& given) {
  const Resources resources = given.with_progress({});
  auto made =
      std::make_shared<DeviceSegment>(device, segment.lists(), segment.size(), segment.code_bytes(), resources);
  upload(segment.offsets(), array_bytes<int64_t>(segment.lists() + 1), made->offsets(), device, resources);
  upload(segment.codes(), segment.size() * segment.code_bytes(), made->codes(), device, resources);
  upload(segment.rows(), array_bytes<uint32_t>(segment.size()), made->rows(), device, resources);
  return made;
}

HostArray<int64_t> download_offsets(const DeviceSegment& segment, const Resources& resources) {
  return download(segment.offsets(), segment.lists() + 1, segment.device(), resources);
}

Segment download_segment(const DeviceSegment& segment, const Resources& resources) {
  const int device = segment.device();
  return std::make_shared<ListSegment>(
      download_offsets(segment, resources),
      download(segment.codes(), segment.size() * segment.code_bytes(), device, resources),
      download(segment.rows(), segment.size(), device, resources), segment.code_bytes(), resources);
}

}  // namespace kith
