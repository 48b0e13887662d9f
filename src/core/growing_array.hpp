// An array that grows at its end, and whose versions share memory: what an immutable state keeps of rows that come
// later.
//
// A version sees its own values, which never change; copies of a version are that version. Who appends to the newest
// writes behind its values, where there is room, which no version before looks at; who appends to an older one, or
// where there is none, copies. Room is an eighth of the array, so that each value is copied some eight times, however
// few come at a time.
//
// Memory: that of the longest version alone, and its room. Versions may be read and appended to on any thread.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "core/parallel_copy.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace kith {

template <typename T>
class GrowingArray {
 public:
  GrowingArray() = default;
  GrowingArray(HostArray<T> values)  // NOLINT: an owned array is the first version of one
      : GrowingArray(std::move(values), -1) {}
  // The first `size` of these values are there.
  GrowingArray(HostArray<T> values, int64_t size)
      : size_(size < 0 ? values.size() : size), memory_(std::make_shared<Memory>(std::move(values), size_)) {}

  const T* data() const { return memory_ == nullptr ? nullptr : memory_->values.data(); }
  int64_t size() const { return size_; }
  int64_t bytes() const { return memory_ == nullptr ? 0 : memory_->values.bytes(); }
  const T& operator[](int64_t i) const { return data()[i]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

  // The values that so many may have room for, once they were appended to.
  static constexpr int64_t capacity_for(int64_t size) { return size + size / 8 + kLeastRoom; }

  // The next version, whose last `count` values fill(to) writes.
  template <typename Fill>
  GrowingArray appended(int64_t count, std::string_view purpose, const Resources& resources, const Fill& fill) const {
    GrowingArray next = *this;
    next.size_ = size_ + count;
    if (!takes_room(next.size_)) {
      HostArray<T> values(capacity_for(next.size_), purpose, resources);
      copy_bytes(values.data(), data(), size_ * static_cast<int64_t>(sizeof(T)), resources);
      next = GrowingArray(std::move(values), next.size_);
    }
    fill(next.memory_->values.data() + size_);
    return next;
  }

 private:
  static constexpr int64_t kLeastRoom = 4096 / static_cast<int64_t>(sizeof(T));

  struct Memory {
    Memory(HostArray<T> given, int64_t size) : values(std::move(given)), used(size) {}
    const HostArray<T> values;
    std::atomic<int64_t> used;  // by the longest version
  };

  // Whether the values up to `end` are this version's to write.
  bool takes_room(int64_t end) const {
    if (memory_ == nullptr || memory_->values.size() < end) return false;
    int64_t own = size_;
    return memory_->used.compare_exchange_strong(own, end);
  }

  int64_t size_ = 0;
  std::shared_ptr<Memory> memory_;
};

}  // namespace kith
