// What is kept of something on each GPU, made when it is first asked for there. The lock is held to look or to keep,
// never while something is made: calls at the same time may both make it, and one is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kith {

template <typename T>
class DeviceCache {
 public:
  using Kept = std::shared_ptr<const T>;

  // Null where there is none.
  Kept find(int device) const {
    const std::lock_guard lock(mutex_);
    return find_locked(device);
  }

  template <typename Make>
  Kept get(int device, const Make& make) const {
    if (Kept found = find(device)) return found;
    return keep(device, make());
  }

  // Returns what is kept: `made`, or what another thread has kept before.
  Kept keep(int device, Kept made) const {
    const std::lock_guard lock(mutex_);
    if (Kept other = find_locked(device)) return other;
    kept_.emplace_back(device, made);
    return made;
  }

  std::vector<int> devices() const {
    const std::lock_guard lock(mutex_);
    std::vector<int> numbers;
    for (const auto& [where, one] : kept_) numbers.push_back(where);
    return numbers;
  }

  int64_t bytes() const {
    const std::lock_guard lock(mutex_);
    int64_t total = 0;
    for (const auto& [where, one] : kept_) total += one->bytes();
    return total;
  }

 private:
  Kept find_locked(int device) const {
    for (const auto& [where, one] : kept_) {
      if (where == device) return one;
    }
    return nullptr;
  }

  mutable std::mutex mutex_;
  mutable std::vector<std::pair<int, Kept>> kept_;
};

}  // namespace kith
