// An owning array of results in host memory that counts against the limit. HostArray gives its pages back, so that
// every call faults its own in anew: a third of a millisecond a megabyte on a virtual machine. Without a limit, arrays
// of up to 32 MiB are in the C library's memory instead, which it keeps for the next. Values are uninitialised.
#pragma once

#include "core/counted_bytes.hpp"
#include "core/host_array.hpp"

#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

namespace kith {

template <typename T>
class ReusedArray {
 public:
  static constexpr int64_t kMostBytes = int64_t{32} << 20;  // beyond these the C library gives them back too

  ReusedArray() = default;
  ReusedArray(int64_t count, std::string_view purpose, const Resources& resources) : size_(count) {
    if (resources.options().host_memory_limit == kNoLimit && array_bytes<T>(count) <= kMostBytes) {
      kept_.reset(new (std::nothrow) T[static_cast<size_t>(count)]);
    }
    if (kept_ == nullptr) {
      own_ = HostArray<T>(count, purpose, resources);
    } else {
      counted_ = CountedBytes(array_bytes<T>(count), purpose, resources);
    }
  }

  T* data() const { return kept_ != nullptr ? kept_.get() : own_.data(); }
  int64_t size() const { return size_; }

 private:
  std::unique_ptr<T[]> kept_;
  CountedBytes counted_;
  HostArray<T> own_;
  int64_t size_ = 0;
};

}  // namespace kith
