#include "core/within_limits.hpp"

#include "core/byte_size.hpp"
#include "core/memory_budget.hpp"
#include "core/named_limit.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

void require(std::string_view which, std::string_view job, int64_t needed, const MemoryBudget& budget) {
  const int64_t used = budget.used();
  if (needed <= budget.limit() - used) return;
  throw NamedLimit(which, saturating_add(used, needed),
                   fmt::format("not enough memory for {}: {} needed, {} left of the {} memory limit of {}", job,
                               format_bytes_up(needed), format_bytes(budget.limit() - used), which,
                               format_bytes(budget.limit())));
}

}  // namespace

bool has_limits(const Resources& resources) {
  return resources.host_memory()->limit() != kNoLimit || resources.device_memory()->limit() != kNoLimit;
}

void require_memory(std::string_view job, const Footprint& needed, const Resources& resources) {
  require("host", job, needed.host, *resources.host_memory());
  require("device", job, needed.device, *resources.device_memory());
}

}  // namespace kith
