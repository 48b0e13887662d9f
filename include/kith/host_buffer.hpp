// Host memory that Kith owns: 64-byte aligned, uninitialised, and counted against the limit of its Resources.
#pragma once

#include <kith/export.hpp>
#include <kith/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace kith {

class KITH_EXPORT HostBuffer {
 public:
  HostBuffer() = default;
  // OutOfMemory that names `purpose` if the limit or the machine has no room.
  HostBuffer(int64_t bytes, std::string_view purpose, const Resources& resources);
  ~HostBuffer() { release(); }
  HostBuffer(HostBuffer&& other) noexcept { swap(other); }
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    swap(other);
    return *this;
  }

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  void swap(HostBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(budget_, other.budget_);
  }
  void release() noexcept;

  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  std::shared_ptr<MemoryBudget> budget_;
};

}  // namespace kith
