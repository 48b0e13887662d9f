// One memory limit shared by everything that was given the same Resources: reservations add up, and one that would
// pass the limit is refused with the bytes it needs. Counts only; the memory itself is taken by the buffers.
//
// A budget may be part of another: its reservations count against the whole, whose limit holds, and its own peak tells
// what one call has used.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace kith {

// Where buffers of a counting budget point: a page without access rights, so that it is not null and use is a fault.
std::byte* counted_only_memory();
inline bool is_counted_only(const void* place) { return place == counted_only_memory(); }

class MemoryBudget {
 public:
  // `name` says which limit an error speaks of: "host" or "device".
  MemoryBudget(std::string_view name, int64_t limit) : MemoryBudget(name, limit, limit != INT64_MAX) {}
  // A sub-budget for one planned operation. `promised`: the user set a limit (the number alone does not say).
  MemoryBudget(std::string_view name, int64_t limit, bool promised) : name_(name), limit_(limit), promised_(promised) {}
  // Without a limit, for memory that is counted and never taken: see core/footprint.hpp.
  struct Counting {};
  MemoryBudget(std::string_view name, Counting) : MemoryBudget(name, INT64_MAX, false) { counts_only_ = true; }
  explicit MemoryBudget(std::shared_ptr<MemoryBudget> whole)
      : name_(whole->name_),
        limit_(whole->limit_),
        promised_(whole->promised_),
        counts_only_(whole->counts_only_),
        whole_(std::move(whole)) {}

  // A share for one of several concurrent workers: it has a limit of its own, within that of the whole.
  MemoryBudget(std::shared_ptr<MemoryBudget> whole, int64_t limit) : MemoryBudget(std::move(whole)) {
    limit_ = limit;
    is_share_ = true;
  }

  // Throws OutOfMemory, and changes nothing, when `bytes` do not fit.
  void reserve(int64_t bytes, std::string_view purpose);
  void release(int64_t bytes) noexcept {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    if (whole_) whole_->release(bytes);
  }

  int64_t limit() const { return limit_; }
  // Whether buffers of this budget get no memory.
  bool counts_only() const { return counts_only_; }
  // Whether the user set a limit: then freed memory goes back to the system at once.
  bool promised() const { return promised_; }
  int64_t used() const { return has_limit() ? used_.load(std::memory_order_relaxed) : whole_->used(); }
  int64_t available() const {
    const int64_t own = limit_ - used();
    return is_share_ ? std::min(own, whole_->available()) : own;
  }
  // The most that was ever taken at a time, from this part alone.
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }

 private:
  bool has_limit() const { return is_share_ || !whole_; }

  std::string_view name_;
  int64_t limit_;
  bool promised_;
  bool counts_only_ = false;
  bool is_share_ = false;
  std::shared_ptr<MemoryBudget> whole_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> peak_{0};
};

}  // namespace kith
