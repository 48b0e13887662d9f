// Memory that one operation has planned, reserved in one piece: concurrent operations cannot plan with the same bytes,
// and none can use more than it planned, unless it reserves more through beyond().
#pragma once

#include <kith/resources.hpp>

#include "core/reused_memory.hpp"

#include <cstdint>

namespace kith {

class Reservation : public InReusedMemory {
 public:
  // Throws OutOfMemory, and reserves nothing, if the limits have fewer bytes available.
  Reservation(int64_t host_bytes, int64_t device_bytes, const Resources& resources);
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // For the operation's own allocations: its limits are the bytes reserved.
  const Resources& resources() const { return inner_; }
  // For needs that become known later.
  const Resources& beyond() const { return outer_; }

 private:
  int64_t host_bytes_;
  int64_t device_bytes_;
  Resources outer_;
  Resources inner_;
};

}  // namespace kith
