// Copies of something immutable, one for each device that needs one: of a model, of a segment of rows, or of data
// derived from them. The first call that needs a copy makes it; all versions of an index share it.
//
// Below an index's versions this is the only place with a lock. It is held to look up or to store, never while a copy
// is made: two concurrent calls may both make one, and the first to finish is kept.
#pragma once

#include <kith/device.hpp>
#include <kith/resources.hpp>

#include "core/within_limits.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kith {

// T has bytes().
template <typename T>
class Placed {
 public:
  using Copy = std::shared_ptr<const T>;

  struct Any {
    bool operator()(const T&) const { return true; }
  };

  // Null if there is none. A device may hold several; `suits(copy)` tells which are acceptable.
  template <typename Suits = Any>
  Copy find(Device device, const Suits& suits = {}) const {
    const std::lock_guard lock(mutex_);
    return find_locked(device, suits);
  }

  // Stores `made` and returns it, or returns the copy that another thread stored before.
  template <typename Suits = Any>
  Copy keep(Device device, Copy made, const Suits& suits = {}) const {
    const std::lock_guard lock(mutex_);
    if (Copy other = find_locked(device, suits)) return other;
    return copies_.emplace_back(device, std::move(made)).second;
  }

  // Returns the copy, made by make() if there is none. Copies made while only counting memory are not kept.
  template <typename Make>
  Copy get(Device device, const Resources& resources, const Make& make) const {
    if (Copy found = find(device)) return found;
    return counts_only(resources) ? make() : keep(device, make());
  }

  std::vector<Device> devices() const {
    const std::lock_guard lock(mutex_);
    std::vector<Device> all;
    for (const auto& [where, copy] : copies_) all.push_back(where);
    return all;
  }

  // Bytes of all copies in the host's memory, or on GPUs.
  int64_t bytes(DeviceKind kind) const {
    const std::lock_guard lock(mutex_);
    int64_t total = 0;
    for (const auto& [where, copy] : copies_) total += where.kind == kind ? copy->bytes() : 0;
    return total;
  }

 private:
  template <typename Suits>
  Copy find_locked(Device device, const Suits& suits) const {
    for (const auto& [where, copy] : copies_) {
      if (where == device && suits(*copy)) return copy;
    }
    return nullptr;
  }

  mutable std::mutex mutex_;
  mutable std::vector<std::pair<Device, Copy>> copies_;  // guarded by mutex_
};

}  // namespace kith
