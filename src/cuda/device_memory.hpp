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

// Uninitialised, counted against the device memory limit, usable on every stream. What has been enqueued on it, but for
// the default stream, must be done before the last copy of the pointer goes.
std::shared_ptr<std::byte> allocate_on_device(int64_t bytes, std::string_view purpose, int device,
                                              const Resources& resources);

// The same for rows of an index: freed after the marks of its searches (cuda/stream_marks.hpp).
std::shared_ptr<std::byte> allocate_for_searches(int64_t bytes, std::string_view purpose, int device,
                                                 const Resources& resources);

// Copies rows, from wherever they lie, to packed rows there, on the resources' stream; returns when that is done.
void copy_to_device(const MatrixView& from, std::byte* to, int device, const Resources& resources);

// Copies bytes from that device's memory, which are complete, or will be in the order of the default stream; returns
// when that is done.
void copy_to_host(const void* from, int64_t bytes, int device, void* to);

// Until all that was enqueued on the resources' stream of that device, on any stream of it, is done. The latter is for
// memory of others that do not expose their streams; where there is no such device there is nothing to wait for.
void wait_for_stream(int device, const Resources& resources);
void wait_for_device(int device);

// The device in whose memory a pointer lies; InvalidArgument where that is none.
int device_of(const void* pointer);

}  // namespace kith
