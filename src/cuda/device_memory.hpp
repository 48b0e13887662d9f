// Device memory behind plain pointers, for code that is compiled with and without CUDA: the public functions, and those
// for the blocks of an index. Without CUDA every function is Unsupported.
#pragma once

#include <kith/device_memory.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace kith {

// As allocate_on_device(), for rows of an index: freed after the marks of its searches (cuda/stream_marks.hpp).
std::shared_ptr<std::byte> allocate_for_searches(int64_t bytes, std::string_view purpose, int device,
                                                 const Resources& resources);

// Copies rows from any memory to packed rows on the device, on the resources' stream; returns when that is done.
void copy_to_device(const MatrixView& from, std::byte* to, int device, const Resources& resources);

// Waits until all work on the resources' stream of that device is complete.
void wait_for_stream(int device, const Resources& resources);

}  // namespace kith
