// Device memory that Kith owns: uninitialised, 256-byte aligned, from its context's pool, and counted against the
// device memory limit it came from. It is usable on the context's stream at once, elsewhere after a synchronisation.
#pragma once

#include <kith/resources.hpp>

#include "cuda/device_context.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace kith {

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // Throws OutOfMemory, naming `purpose`, if the limit or the device has no room.
  DeviceBuffer(int64_t bytes, std::string_view purpose, std::shared_ptr<const DeviceContext> context,
               const Resources& resources);
  ~DeviceBuffer() { release(); }
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }

  // Frees it in the order of that context's stream from now on. All work on it so far must be complete.
  void free_in_order_of(std::shared_ptr<const DeviceContext> context) { context_ = std::move(context); }

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  void swap(DeviceBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(context_, other.context_);
    std::swap(budget_, other.budget_);
  }
  void release() noexcept;

  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  std::shared_ptr<const DeviceContext> context_;
  std::shared_ptr<MemoryBudget> budget_;
};

}  // namespace kith
