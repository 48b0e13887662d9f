// Arrays of one owner in one block of host memory. Taking memory from a budget costs as much for a few bytes as for
// many, and a search of one query, made of small parts, would do so fifty times. The owner lists its arrays once:
//
//   struct Arrays {
//     Arrays(ArrayPlaces& places, int64_t rows) : keys(places.take<float>(rows)), rows(places.take<uint32_t>(rows)) {}
//     PlacedArray<float> keys;
//     PlacedArray<uint32_t> rows;
//   };
//   const HostArrays<Arrays> held("the keys", resources, rows);
//   held->keys[0] = 1;
#pragma once

#include <kith/host_buffer.hpp>

#include "core/memory_budget.hpp"
#include "core/scratch_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kith {

// As HostArray, in a block that it does not own: uninitialised, and without memory if the block is only counted.
template <typename T>
class PlacedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  PlacedArray() = default;
  PlacedArray(T* data, int64_t count, bool there) : data_(data), size_(count), there_(there ? count : 0) {}

  T* data() const { return data_; }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) const { return data_[i]; }
  T* begin() const { return data_; }
  T* end() const { return data_ + there_; }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
  int64_t there_ = 0;
};

// Hands out the arrays of a block one after the other; without a block it counts their bytes.
class ArrayPlaces {
 public:
  ArrayPlaces() = default;
  explicit ArrayPlaces(std::byte* block) : block_(block) {}

  template <typename T>
  PlacedArray<T> take(int64_t count) {
    constexpr int64_t kLine = 64;
    const Slot<T> slot = layout_.take<T>(count, kLine);
    if (block_ == nullptr) return {nullptr, count, false};
    const bool there = !is_counted_only(block_);
    return {there ? slot.in(block_) : reinterpret_cast<T*>(block_), count, there};
  }
  int64_t bytes() const { return layout_.bytes; }

 private:
  std::byte* block_ = nullptr;
  ScratchLayout layout_;
};

template <typename Arrays>
class HostArrays {
 public:
  template <typename... Shape>
  HostArrays(std::string_view purpose, const Resources& resources, const Shape&... shape)
      : memory_(bytes_for(shape...), purpose, resources), arrays_(placed_in(memory_.data(), shape...)) {}

  const Arrays* operator->() const { return &arrays_; }
  const Arrays& operator*() const { return arrays_; }

 private:
  template <typename... Shape>
  static int64_t bytes_for(const Shape&... shape) {
    ArrayPlaces counted;
    const Arrays unplaced(counted, shape...);
    return counted.bytes();
  }
  template <typename... Shape>
  static Arrays placed_in(std::byte* block, const Shape&... shape) {
    ArrayPlaces places(block);
    return Arrays(places, shape...);
  }

  HostBuffer memory_;
  Arrays arrays_;
};

}  // namespace kith
