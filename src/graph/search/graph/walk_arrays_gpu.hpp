// Arrays of a search graph in the memory of a GPU, for code without CUDA types: builds make them, and searches and later
// builds take them as they are.
#pragma once

#include <kith/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kith {

// Bytes in the memory of a GPU, shared by all copies of the object.
class GpuBytes {
 public:
  GpuBytes() = default;
  // Uninitialised.
  GpuBytes(int64_t bytes, int device, const Resources& resources);
  // A copy of an array in host memory.
  GpuBytes(const void* data, int64_t bytes, int device, const Resources& resources);

  int64_t bytes() const { return bytes_; }
  std::byte* data() const { return memory_.get(); }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(memory_.get());
  }
  // The same memory, of which the first bytes count.
  GpuBytes first(int64_t bytes) const {
    GpuBytes some = *this;
    some.bytes_ = bytes;
    return some;
  }

 private:
  int64_t bytes_ = 0;
  std::shared_ptr<std::byte> memory_;
};

// The codes and the lists of all places, as they are in host memory; both empty if no GPU has them.
struct WalkArraysOnGpu {
  int device = 0;
  GpuBytes codes;
  GpuBytes edges;

  bool there() const { return codes.bytes() > 0; }
};

}  // namespace kith
