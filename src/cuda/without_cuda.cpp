// What a build without CUDA says of its devices, and of memory on them.
#include <kith/device.hpp>

#include "core/dispatch.hpp"
#include "cuda/device_info.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/stream_marks.hpp"

namespace kith {

bool built_with_cuda() { return false; }
std::vector<DeviceInfo> cuda_devices() { return {}; }
DeviceInfo cuda_device(int) { return {}; }
DeviceInfo cuda_device_when_idle(int) { return {}; }
int64_t idle_pool_bytes(int) { return 0; }

std::shared_ptr<std::byte> allocate_on_device(int64_t, std::string_view, int, const Resources&) { throw_no_cuda(); }
std::shared_ptr<std::byte> allocate_for_searches(int64_t, std::string_view, int, const Resources&) { throw_no_cuda(); }
void copy_to_device(const MatrixView&, std::byte*, int, const Resources&) { throw_no_cuda(); }
void copy_to_host(const void*, int64_t, int, void*) { throw_no_cuda(); }
void wait_for_stream(int, const Resources&) { throw_no_cuda(); }
void wait_for_device(int) {}  // nothing was enqueued
int device_of(const void*) { throw_no_cuda(); }

std::shared_ptr<const StreamMark> mark_stream(int, const Resources&) noexcept { return nullptr; }
StreamMarks::~StreamMarks() = default;
void StreamMarks::add(const std::shared_ptr<const StreamMark>&) noexcept {}

}  // namespace kith
