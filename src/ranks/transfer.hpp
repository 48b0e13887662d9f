// Copies arrays between devices, and from the caller's memory to devices that cannot read it; the only place that does.
// The owner of every buffer is queried and must be the one that its view names. Copies between two GPUs are peer copies
// if the driver supports them, otherwise they go through the driver's pinned memory; copies between a GPU and the host
// use the device's stream.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

namespace kith {

// Throws InvalidArgument if `data` is not in the memory that `space` names: a buffer of another device, or of none.
void check_owner(const void* data, const MemorySpace& space, std::string_view what);

// Rows that a part can read: in place if possible, otherwise a copy in the memory of its device.
class RowsOnPart {
 public:
  RowsOnPart(const MatrixView& rows, const Resources& part);
  const MatrixView& view() const { return view_; }

 private:
  MatrixBuffer on_host_;
  std::shared_ptr<std::byte> on_device_;
  MatrixView view_;
};

// Whether the device of `part` can write there itself.
bool writes_to(const MemorySpace& space, const Resources& part);

// Copies bytes from host memory to where `space` says; returns when they are there.
void transfer(const void* from, int64_t bytes, void* to, const MemorySpace& space, const Resources& resources);

// The same from the memory of one GPU to that of another, or within one, in the order of the resources' stream.
void transfer(const void* from, const MemorySpace& from_space, int64_t bytes, void* to, const MemorySpace& space,
              const Resources& resources);

void wait_for_space(const MemorySpace& space, const Resources& resources);
// Waits for the caller's work on its stream for data in these memories, since parts have streams of their own.
template <typename... Spaces>
void wait_for_caller(const Resources& resources, const Spaces&... spaces) {
  (wait_for_space(spaces, resources), ...);
}

}  // namespace kith
