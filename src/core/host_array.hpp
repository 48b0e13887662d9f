// An owning array in host memory that counts against the limit: HostBuffer with a type and a length. Its values are
// uninitialised, so T must need no constructor. One that is only counted (core/footprint.hpp) has a size, but nothing from
// begin() to end().
#pragma once

#include <kith/host_buffer.hpp>

#include "core/memory_budget.hpp"

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kith {

// What `count` of them take, for plans.
template <typename T>
constexpr int64_t array_bytes(int64_t count) {
  return count * static_cast<int64_t>(sizeof(T));
}

template <typename T>
class HostArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  HostArray() = default;
  HostArray(int64_t count, std::string_view purpose, const Resources& resources)
      : buffer_(array_bytes<T>(count), purpose, resources),
        size_(count),
        there_(resources.host_memory()->counts_only() ? 0 : count) {}

  T* data() const { return buffer_.template as<T>(); }
  int64_t size() const { return size_; }
  int64_t bytes() const { return buffer_.bytes(); }
  T& operator[](int64_t i) const { return data()[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + there_; }

 private:
  HostBuffer buffer_;
  int64_t size_ = 0;
  int64_t there_ = 0;
};

}  // namespace kith
