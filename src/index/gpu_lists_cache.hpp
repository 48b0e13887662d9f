// The copies of one state's lists on GPUs, made by the first search there. The lock is held to look or to keep, never
// while a copy is made: searches at the same time may both make one, and one is kept.
#pragma once

#include "ivf/gpu_lists.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kith {

class GpuListsCache {
 public:
  using Lists = std::shared_ptr<const GpuLists>;

  template <typename Make>
  Lists get(int device, const Make& make) const {
    if (Lists found = find(device)) return found;
    Lists made = make();
    const std::lock_guard lock(mutex_);
    for (const auto& [where, lists] : kept_) {
      if (where == device) return lists;
    }
    kept_.emplace_back(device, made);
    return made;
  }

  int64_t bytes() const {
    const std::lock_guard lock(mutex_);
    int64_t total = 0;
    for (const auto& [where, lists] : kept_) total += lists->bytes();
    return total;
  }

 private:
  Lists find(int device) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [where, lists] : kept_) {
      if (where == device) return lists;
    }
    return nullptr;
  }

  mutable std::mutex mutex_;
  mutable std::vector<std::pair<int, Lists>> kept_;
};

}  // namespace kith
