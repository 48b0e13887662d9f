// Measures the peak memory of one call whose limits other calls may share.
#pragma once

#include <kith/resources.hpp>

#include "core/memory_budget.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class PeakMemory {
 public:
  explicit PeakMemory(const Resources& resources)
      : resources_(resources.with_budgets(std::make_shared<MemoryBudget>(resources.host_memory()),
                                          std::make_shared<MemoryBudget>(resources.device_memory()))) {}

  // For the call: the same limits, counted apart.
  const Resources& resources() const { return resources_; }

  int64_t host_bytes() const { return resources_.host_memory()->peak(); }
  int64_t device_bytes() const { return resources_.device_memory()->peak(); }

 private:
  Resources resources_;
};

}  // namespace kith
