#include "core/reservation.hpp"

#include "core/machine_memory.hpp"
#include "core/memory_budget.hpp"

#include <memory>
#include <string_view>

namespace kith {
namespace {

std::shared_ptr<MemoryBudget> part(std::string_view name, int64_t bytes, const MemoryBudget& whole) {
  return std::allocate_shared<MemoryBudget>(ReusedAllocator<MemoryBudget>(), name, bytes, whole.promised());
}

}  // namespace

Reservation::Reservation(int64_t host_bytes, int64_t device_bytes, const Resources& resources)
    : host_bytes_(host_bytes),
      device_bytes_(device_bytes),
      outer_(resources),
      inner_(resources.with_budgets(part("host", host_bytes, *resources.host_memory()),
                                    part("device", device_bytes, *resources.device_memory()))) {
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
