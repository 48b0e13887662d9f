// Memory of a CUDA device behind plain pointers, for results that stay there. Without CUDA every function is
// Unsupported, but wait_for_device().
#pragma once

#include <kith/export.hpp>
#include <kith/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace kith {

// Uninitialised, counted against the device memory limit, usable on every stream. Work on it must be complete before
// the last copy of the pointer is destroyed, except for work on the default stream.
KITH_EXPORT std::shared_ptr<std::byte> allocate_on_device(int64_t bytes, std::string_view purpose, int device,
                                                          const Resources& resources);

// Copies bytes from that device's memory, whose content must be complete in the order of the default stream; returns
// when that is done.
KITH_EXPORT void copy_to_host(const void* from, int64_t bytes, int device, void* to);

// Waits until all work on all streams of the device is complete, for memory of libraries that do not expose their
// streams. Without such a device it returns at once.
KITH_EXPORT void wait_for_device(int device);

// The device that owns the memory of a pointer; throws InvalidArgument if none does.
KITH_EXPORT int device_of(const void* pointer);

}  // namespace kith
