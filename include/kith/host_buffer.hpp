// Host memory that Kith owns: 64-byte aligned, uninitialised, and counted against the limit of its Resources. HostArray
// is the same with a type and a length.
#pragma once

#include <kith/export.hpp>
#include <kith/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
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
  // Whether its bytes are counted without memory behind them, while Kith works out what a call needs.
  bool only_counted() const;
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

// `count` values, which need no constructor.
template <typename T>
class HostArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  HostArray() = default;
  HostArray(int64_t count, std::string_view purpose, const Resources& resources)
      : buffer_(count * static_cast<int64_t>(sizeof(T)), purpose, resources),
        size_(count),
        there_(buffer_.only_counted() ? 0 : count) {}

  T* data() const { return buffer_.template as<T>(); }
  int64_t size() const { return size_; }
  int64_t bytes() const { return buffer_.bytes(); }
  T& operator[](int64_t i) const { return data()[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + there_; }  // begin() where it is only counted

 private:
  HostBuffer buffer_;
  int64_t size_ = 0;
  int64_t there_ = 0;
};

}  // namespace kith
