// A plan together with a reservation of the memory that it needs, held while the work lasts.
//
// plan_with(budget) makes the best plan that fits or, if none fits, the smallest: a plan has host_bytes and
// device_bytes, or a bytes_of() of its own. Only this file compares these with what is available.
#pragma once

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/cpu_target.hpp"
#include "core/footprint.hpp"
#include "core/memory_budget.hpp"
#include "core/plan_budget.hpp"
#include "core/reservation.hpp"
#include "core/within_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

namespace kith {

template <typename Plan>
Footprint bytes_of(const Plan& plan) {
  return {plan.host_bytes, plan.device_bytes};
}

// A plan, and what its GPU has free, whatever the limit.
template <typename Plan>
struct PlanWithin {
  Plan plan;
  int64_t device_free = kNoLimit;

  bool fits(const PlanBudget& budget) const {
    const Footprint needed = bytes_of(plan);
    return needed.host <= budget.host && needed.device <= std::min(budget.device, device_free);
  }
};
// clang deduces it from an aggregate's members from version 17 on.
template <typename Plan>
PlanWithin(Plan, int64_t = kNoLimit) -> PlanWithin<Plan>;

template <typename Plan>
struct Planned {
  Plan plan;
  std::unique_ptr<Reservation> memory;

  const Resources& resources() const { return memory->resources(); }
};

inline PlanBudget budget_left(const Resources& resources) {
  return {resources.host_memory()->available(), resources.device_memory()->available(), resources.threads(),
          cpu_extensions()};
}

// Plans with half of the available memory if a plan fits in it, since other calls may share the limits. If not even all
// of it suffices, the error names a limit that does; `job` as in "not enough memory for k-means".
template <typename Plan, typename PlanWith>
Planned<Plan> plan_and_reserve(std::string_view job, const PlanWith& plan_with, const Resources& resources) {
  constexpr int kTries = 8;  // another call may take what this one has just planned with
  for (int i = 1;; ++i) {
    const PlanBudget all = budget_left(resources);
    const PlanBudget half{all.host / 2, all.device / 2, all.threads, all.cpu};
    PlanWithin<Plan> best = plan_with(half);
    if (!best.fits(half)) best = plan_with(all);
    const Footprint needed = bytes_of(best.plan);
    if (needed.device > best.device_free) {  // no limit would do
      throw OutOfMemory(fmt::format("not enough memory for {}: {} needed, {} free on the GPU; free "
                                    "memory there, or reduce the size of the problem",
                                    job, format_bytes_up(needed.device), format_bytes(best.device_free)),
                        needed.device);
    }
    if (!best.fits(all)) require_memory(job, needed, resources);
    try {
      return {std::move(best.plan), std::make_unique<Reservation>(needed.host, needed.device, resources)};
    } catch (const OutOfMemory&) {
      if (i == kTries) throw;
    }
  }
}

// The memory of the smallest plan: of each kind, given enough of the other.
template <typename PlanWith>
Footprint least_plan(const PlanWith& plan_with, const Resources& resources) {
  const auto least = [&](int64_t host, int64_t device) {
    return bytes_of(plan_with({host, device, resources.threads(), cpu_extensions()}).plan);
  };
  return {least(0, kNoLimit).host, least(kNoLimit, 0).device};
}

// Whether any plan fits in the memory that is available now.
template <typename PlanWith>
bool plan_fits(const PlanWith& plan_with, const Resources& resources) {
  const PlanBudget left = budget_left(resources);
  return plan_with(left).fits(left);
}

}  // namespace kith
