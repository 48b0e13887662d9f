// Work that is counted before it is done: what a build of a graph needs is found by building it with resources that count
// (core/footprint.hpp). It allocates as always. Loops over threads and over arrays do nothing then; what else would touch that
// memory asks only_counts().
#pragma once

#include <kith/resources.hpp>

#include "core/memory_budget.hpp"
#include "core/reservation.hpp"
#include "core/within_limits.hpp"

namespace kith {

inline bool only_counts(const Resources& resources) { return resources.host_memory()->counts_only(); }

// A part of the work that states its footprint, beside what is held already.
inline void count_work(const Footprint& needed, const Resources& resources) {
  const Reservation counted(needed.host, needed.device, resources);
}

// The same for a public call, made with the resources that it is given.
template <typename Call>
void count_call(const Resources& resources, const Call& call) {
  count_work(footprint_of_call(resources, call), resources);
}

// A public call as a step of the work: counted, or made.
template <typename Call>
void call_or_count(const Resources& resources, const Call& call) {
  if (only_counts(resources)) return count_call(resources, call);
  call(resources);
}

}  // namespace kith
