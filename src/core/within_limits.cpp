#include "core/within_limits.hpp"

#include <kith/one_call.hpp>

#include "core/byte_size.hpp"
#include "core/memory_budget.hpp"
#include "core/named_limit.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

void require(std::string_view which, std::string_view job, int64_t needed, bool at_least, const MemoryBudget& budget) {
  const int64_t used = budget.used();
  if (needed <= budget.limit() - used) return;
  throw NamedLimit(which, saturating_add(used, needed),
                   fmt::format("not enough memory for {}: {}{} needed, {} left of the {} memory limit of {}", job,
                               at_least ? "at least " : "", format_bytes_up(needed),
                               format_bytes(budget.limit() - used), which, format_bytes(budget.limit())));
}

}  // namespace

bool counts_memory(const Resources& resources) {
  return resources.host_memory()->promised() || resources.device_memory()->promised() ||
         resources.host_memory()->counts_only();
}

void require_memory(std::string_view job, const Footprint& needed, const Resources& resources) {
  const MemoryBudget& host = *resources.host_memory();
  const MemoryBudget& device = *resources.device_memory();
  if (host.counts_only()) throw CountedCall{needed.beside({host.used(), device.used()})};
  require("host", job, needed.host, needed.at_least, host);
  require("device", job, needed.device, needed.at_least, device);
}

bool counts_only(const Resources& resources) { return resources.host_memory()->counts_only(); }

void run_as_one_call(std::string_view job, const Resources& resources,
                     const std::function<void(const Resources&)>& steps) {
  within_limits(job, resources, steps);
}

}  // namespace kith
