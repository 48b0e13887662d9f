#include "core/reservation.hpp"

#include "core/machine_memory.hpp"
#include "core/memory_budget.hpp"

namespace kith {

Reservation::Reservation(int64_t host_bytes, int64_t device_bytes, const Resources& resources)
    : host_bytes_(host_bytes),
      device_bytes_(device_bytes),
      outer_(resources),
      inner_(resources.with_budgets(
          std::make_shared<MemoryBudget>("host", host_bytes, resources.host_memory()->promised()),
          std::make_shared<MemoryBudget>("device", device_bytes, resources.device_memory()->promised()))) {
  outer_.host_memory()->reserve(host_bytes, "the operation");
  try {
    check_machine_has(host_bytes, outer_.host_memory()->used(), "the operation");
    outer_.device_memory()->reserve(device_bytes, "the operation");
  } catch (...) {
    outer_.host_memory()->release(host_bytes);
    throw;
  }
}

Reservation::~Reservation() {
  outer_.host_memory()->release(host_bytes_);
  outer_.device_memory()->release(device_bytes_);
}

}  // namespace kith
