// A plan together with the memory that it needs, taken from the limits while the work lasts.
//
// A plan says its host_bytes and device_bytes, or has a bytes_of() of its own; plan_with(budget) makes the best one
// that fits, or throws OutOfMemory.
#pragma once

#include <kith/error.hpp>

#include "core/cpu_target.hpp"
#include "core/footprint.hpp"
#include "core/memory_budget.hpp"
#include "core/named_limit.hpp"
#include "core/plan_budget.hpp"
#include "core/reservation.hpp"

#include <algorithm>
#include <memory>

namespace kith {

struct PlanBytes {
  int64_t host = 0;
  int64_t device = 0;
};
template <typename Plan>
PlanBytes bytes_of(const Plan& plan) {
  return {plan.host_bytes, plan.device_bytes};
}

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

// Throws what a plan needs at least together with what is in use, as the limit that would do.
template <typename PlanWith>
[[noreturn]] void name_the_limit(const PlanWith& plan_with, const PlanBudget& left, const OutOfMemory& error,
                                 const Resources& resources) {
  const auto fits = [&](int64_t host, int64_t device) {
    try {
      PlanBudget budget = left;
      budget.host = host;
      budget.device = device;
      (void)plan_with(budget);
      return true;
    } catch (const OutOfMemory&) {
      return false;
    }
  };
  const int64_t needed = error.bytes_needed();
  if (fits(std::max(left.host, needed), left.device)) {
    throw NamedLimit("host", resources.host_memory()->used() + needed, error.what());
  }
  // Where a GPU itself has too little memory, no limit would do.
  if (fits(left.host, std::max(left.device, needed))) {
    throw NamedLimit("device", resources.device_memory()->used() + needed, error.what());
  }
  throw error;
}

// With half of what is left, where that will do: other calls under the same limits want to work too.
template <typename Plan, typename PlanWith>
Planned<Plan> plan_and_reserve(const PlanWith& plan_with, const Resources& resources) {
  constexpr int kTries = 8;  // another call may take what this one has just planned with
  for (int i = 1;; ++i) {
    const PlanBudget all = budget_left(resources);
    PlanBudget half = all;
    half.host /= 2;
    half.device /= 2;
    Planned<Plan> planned;
    try {
      planned.plan = plan_with(half);
    } catch (const OutOfMemory&) {
      try {
        planned.plan = plan_with(all);
      } catch (const OutOfMemory& error) {
        name_the_limit(plan_with, all, error, resources);
      }
    }
    try {
      const PlanBytes bytes = bytes_of(planned.plan);
      planned.memory = std::make_unique<Reservation>(bytes.host, bytes.device, resources);
      return planned;
    } catch (const OutOfMemory&) {
      if (i == kTries) throw;
    }
  }
}

// The footprint of the smallest plan. Where a GPU itself has too little memory for any, no limit would do, and the
// error is the plan's.
template <typename PlanWith>
Footprint least_plan(const PlanWith& plan_with, const Resources& resources) {
  PlanBudget budget;
  budget.threads = resources.threads();
  budget.cpu = cpu_extensions();
  const auto least = [&](int64_t host, int64_t device) -> Footprint {
    budget.host = host;
    budget.device = device;
    try {
      const PlanBytes bytes = bytes_of(plan_with(budget));
      return {host == 0 ? bytes.host : 0, device == 0 ? bytes.device : 0};
    } catch (const OutOfMemory& error) {
      return {host == 0 ? error.bytes_needed() : 0, device == 0 ? error.bytes_needed() : 0};
    }
  };
  return least(0, kNoLimit).beside(least(kNoLimit, 0));
}

// Whether any plan fits what is left now.
template <typename PlanWith>
bool plan_fits(const PlanWith& plan_with, const Resources& resources) {
  try {
    (void)plan_with(budget_left(resources));
    return true;
  } catch (const OutOfMemory&) {
    return false;
  }
}

}  // namespace kith
