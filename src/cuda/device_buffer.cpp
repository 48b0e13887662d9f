#include "cuda/device_buffer.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/memory_budget.hpp"
#include "cuda/error.hpp"

#include <string>

namespace kith {

DeviceBuffer::DeviceBuffer(int64_t bytes, std::string_view purpose, std::shared_ptr<const DeviceContext> context,
                           const Resources& resources)
    : bytes_(bytes),
      context_(std::move(context)),
      // Footprints are counted without a device.
      budget_(context_ == nullptr ? resources.device_memory() : resources.device_memory(context_->device())) {
  if (bytes == 0) return;
  budget_->reserve(bytes, purpose);
  if (budget_->counts_only()) {
    data_ = counted_only_memory();
    return;
  }
  void* memory = nullptr;
  const cudaError_t error =
      cudaMallocFromPoolAsync(&memory, static_cast<size_t>(bytes), context_->pool(), context_->stream());
  if (error != cudaSuccess) {
    budget_->release(bytes);
    if (error != cudaErrorMemoryAllocation) throw_cuda_error(error, "cudaMallocFromPoolAsync");
    (void)cudaGetLastError();
    throw OutOfMemory("not enough memory on cuda:" + std::to_string(context_->device()) + " for " +
                          std::string(purpose) + ": " + format_bytes(bytes) +
                          " needed; free memory there or set a device memory limit",
                      bytes);
  }
  data_ = static_cast<std::byte*>(memory);
}

void DeviceBuffer::release() noexcept {
  if (data_ == nullptr) return;
  if (!budget_->counts_only()) (void)cudaFreeAsync(data_, context_->stream());
  budget_->release(bytes_);
  data_ = nullptr;
}

}  // namespace kith
