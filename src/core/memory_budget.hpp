// One memory limit shared by everything that was given the same Resources: reservations add up, and one that would
// pass the limit is refused with the bytes it needs. Counts only; the memory itself is taken by the buffers.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace kith {

class MemoryBudget {
 public:
  // `name` says which limit an error speaks of: "host" or "device".
  MemoryBudget(std::string_view name, int64_t limit) : name_(name), limit_(limit) {}

  // Throws OutOfMemory, and changes nothing, when `bytes` do not fit.
  void reserve(int64_t bytes, std::string_view purpose);
  void release(int64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  int64_t limit() const { return limit_; }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  int64_t available() const { return limit_ - used(); }

 private:
  std::string_view name_;
  int64_t limit_;
  std::atomic<int64_t> used_{0};
};

}  // namespace kith
