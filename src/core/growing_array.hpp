// An append-only array whose versions share memory, for immutable states that keep one value for each row of an index
// that grows.
//
// A version sees its own values, which never change; a copy of a version is the same version. Appending to the newest
// version writes behind its values, into spare capacity that older versions never read. Appending to an older version,
// or without spare capacity, copies. Spare capacity is an eighth of the array, so each value is copied about eight
// times however few are appended at a time.
//
// Memory: that of the longest version and its spare capacity. Versions may be read and appended to on any thread.
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

  // The capacity that an array of `size` values may have after an append.
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

  // Claims the spare capacity up to `end` for this version; false if another version has it.
  bool takes_room(int64_t end) const {
    if (memory_ == nullptr || memory_->values.size() < end) return false;
    int64_t own = size_;
    return memory_->used.compare_exchange_strong(own, end);
  }

  int64_t size_ = 0;
  std::shared_ptr<Memory> memory_;
};

}  // namespace kith
