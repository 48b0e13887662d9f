// An owning array in device memory: DeviceBuffer with a type and a length, HostArray's twin. Its values are uninitialised.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "cuda/device_buffer.hpp"
#include "cuda/device_context.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace kith {

template <typename T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceArray() = default;
  // Throws OutOfMemory, naming `purpose`, if the limit or the device has no room.
  DeviceArray(int64_t count, std::string_view purpose, std::shared_ptr<const DeviceContext> context,
              const Resources& resources)
      : buffer_(array_bytes<T>(count), purpose, std::move(context), resources), size_(count) {}

  T* data() const { return buffer_.template as<T>(); }
  int64_t size() const { return size_; }
  int64_t bytes() const { return buffer_.bytes(); }

  // Frees it in the order of that context's stream from now on. All work on it so far must be complete.
  void free_in_order_of(std::shared_ptr<const DeviceContext> context) { buffer_.free_in_order_of(std::move(context)); }

 private:
  DeviceBuffer buffer_;
  int64_t size_ = 0;
};

}  // namespace kith
