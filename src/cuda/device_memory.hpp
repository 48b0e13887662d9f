// Device memory behind plain pointers, for code that is compiled with and without CUDA: the blocks of an index, arrays
// that go to Python. Without CUDA every function is Unsupported.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace kith {

// Uninitialised, counted against the device memory limit, usable on every stream. Work on it must be complete before
// the last copy of the pointer is destroyed, except for work on the default stream.
std::shared_ptr<std::byte> allocate_on_device(int64_t bytes, std::string_view purpose, int device,
                                              const Resources& resources);

// The same for rows of an index: freed after the marks of its searches (cuda/stream_marks.hpp).
std::shared_ptr<std::byte> allocate_for_searches(int64_t bytes, std::string_view purpose, int device,
                                                 const Resources& resources);

// Copies rows from any memory to packed rows on the device, on the resources' stream; returns when that is done.
void copy_to_device(const MatrixView& from, std::byte* to, int device, const Resources& resources);

// Copies bytes from that device's memory, whose content must be complete in the order of the default stream; returns
// when that is done.
void copy_to_host(const void* from, int64_t bytes, int device, void* to);

// Wait until all work on the resources' stream of that device, or on all of its streams, is complete. The latter is for
// memory of libraries that do not expose their streams; without such a device it returns at once.
void wait_for_stream(int device, const Resources& resources);
void wait_for_device(int device);

// The device that owns the memory of a pointer; throws InvalidArgument if none does.
int device_of(const void* pointer);

}  // namespace kith
