// Memory that one operation has planned for, taken from the limits in one piece: operations that run at once cannot
// plan with the same bytes, and none can spend more than it planned, unless it takes another one beyond it.
#pragma once

#include <kith/resources.hpp>

#include "core/reused_memory.hpp"

#include <cstdint>

namespace kith {

class Reservation : public InReusedMemory {
 public:
  // Throws OutOfMemory, and takes nothing, where the limits have less left.
  Reservation(int64_t host_bytes, int64_t device_bytes, const Resources& resources);
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // For the operation's own allocations: its limits are the bytes reserved.
  const Resources& resources() const { return inner_; }
  // For what may turn out to be wanted beyond them.
  const Resources& beyond() const { return outer_; }

 private:
  int64_t host_bytes_;
  int64_t device_bytes_;
  Resources outer_;
  Resources inner_;
};

}  // namespace kith
