// How much memory a piece of work holds at once, on the host and on a device.
//
// These numbers are never written by hand. footprint_of<Class>(resources, arguments...) constructs an object with
// resources that count allocations without making them, so the constructor is the only statement of what a class needs.
// (Such a constructor may allocate, but must not touch the memory.) Footprints compose as the work does: concurrent
// parts add up, and of consecutive parts the larger counts.
#pragma once

#include <kith/memory_space.hpp>
#include <kith/resources.hpp>

#include "core/byte_size.hpp"
#include "core/memory_budget.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>

namespace kith {

struct Footprint {
  int64_t host = 0;
  int64_t device = 0;
  bool at_least = false;  // more may turn out to be needed: nobody knows how many rows are in a range

  static Footprint in(const MemorySpace& space, int64_t bytes) {
    return space.host_readable() ? Footprint{bytes} : Footprint{0, bytes};
  }

  // Both at the same time. A sum that would overflow is kNoLimit.
  constexpr Footprint beside(const Footprint& other) const {
    return {saturating_add(host, other.host), saturating_add(device, other.device), at_least || other.at_least};
  }
  // One after the other.
  constexpr Footprint then(const Footprint& other) const {
    return {std::max(host, other.host), std::max(device, other.device), at_least || other.at_least};
  }
  // This work beside a buffer of 1/share of the available memory, which is at least `each`.
  constexpr Footprint beside_share(int64_t share, const Footprint& each) const {
    const auto piece = [=](int64_t needed, int64_t least) {
      return least == 0 ? 0 : std::max(needed / (share - 1) + 1, least);
    };
    return beside({piece(host, each.host), piece(device, each.device), each.at_least});
  }
  // `count` equal ones at the same time, for instance one for each thread.
  constexpr Footprint times(int64_t count) const {
    return {saturating_multiply(host, count), saturating_multiply(device, count), at_least};
  }

  friend constexpr bool operator==(const Footprint&, const Footprint&) = default;
};

// An array on the host, where no class states it.
template <typename T>
constexpr Footprint array_footprint(int64_t count, int64_t each = 1) {
  return {saturating_multiply(saturating_multiply(count, each), sizeof(T))};
}

// Device memory that a call may take beyond what it needs at least (core/within_limits.hpp).
struct SpareDeviceMemory {
  static int64_t of(const Resources& resources) { return resources.spare_device_memory_; }
  static Resources with(Resources resources, int64_t bytes) {
    resources.spare_device_memory_ = bytes;
    return resources;
  }
  // For one of so many parts.
  static Resources divided(const Resources& resources, int64_t parts) {
    return with(resources, of(resources) / std::max<int64_t>(1, parts));
  }
};

// The peak of what `make` allocates with the resources that it is given. Nothing is enqueued on their
// stream: launches and copies return at once (cuda/launch.hpp, cuda/device_context.hpp).
template <typename Make>
Footprint counted(const Resources& resources, const Make& make) {
  const auto host = std::make_shared<MemoryBudget>("host", MemoryBudget::Counting());
  const auto device = std::make_shared<MemoryBudget>("device", MemoryBudget::Counting());
  make(SpareDeviceMemory::with(resources.with_budgets(host, device), 0).with_stream(counted_only_memory()));
  return {host->peak(), device->peak()};
}

// The memory of an object that is constructed from `arguments` and, last, resources.
template <typename Class, typename... Arguments>
Footprint footprint_of(const Resources& resources, const Arguments&... arguments) {
  return counted(resources, [&](const Resources& counting) { const Class object(arguments..., counting); });
}

}  // namespace kith
