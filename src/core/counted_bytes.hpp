// Counts bytes against the host memory limit for as long as it lives, for memory that the standard library allocates,
// such as the values of a trained code.
#pragma once

#include <kith/resources.hpp>

#include "core/memory_budget.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace kith {

class CountedBytes {
 public:
  CountedBytes() = default;
  // Throws OutOfMemory, naming `purpose`, if fewer bytes are available.
  CountedBytes(int64_t bytes, std::string_view purpose, const Resources& resources)
      : budget_(resources.host_memory()), bytes_(bytes) {
    budget_->reserve(bytes, purpose);
  }
  ~CountedBytes() {
    if (budget_ != nullptr) budget_->release(bytes_);
  }
  CountedBytes(CountedBytes&& other) noexcept { swap(other); }
  CountedBytes& operator=(CountedBytes&& other) noexcept {
    swap(other);
    return *this;
  }

 private:
  void swap(CountedBytes& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
  }

  std::shared_ptr<MemoryBudget> budget_;
  int64_t bytes_ = 0;
};

}  // namespace kith
