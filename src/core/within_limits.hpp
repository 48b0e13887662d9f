// The one place where a call meets the memory limits. Every public call goes through it: what the call needs at least
// is stated as a footprint and compared with what is left before anything is done, so an error names a limit with which
// the whole call works, and a limit of one byte less is refused with the same words.
//
// To learn the footprint of a public call that is a step of something larger, make it through footprint_of_call(): it
// runs the call with counting resources, and within_limits() then returns the footprint instead of doing the work.
//
// Other work is counted in the same way. It allocates as always; parallel loops do nothing and GPUs get no work while
// resources only count. All other code that would touch the memory asks counts_only() first.
#pragma once

#include <kith/one_call.hpp>
#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "core/memory_budget.hpp"
#include "core/reservation.hpp"

#include <string_view>
#include <type_traits>

namespace kith {

// Thrown instead of doing work that is only counted; never leaves footprint_of_call().
struct CountedCall {
  Footprint footprint;
};

// Whether within_limits() looks at footprints: the user has set a limit, or the call is only counted. An operation's
// own reservation is no such limit: a search that is one of its steps was counted with it.
bool counts_memory(const Resources& resources);

// Throws a NamedLimit if less than `needed` is available, the host's before the device's; a CountedCall if the call is
// only counted. `job` as in "not enough memory for k-means".
void require_memory(std::string_view job, const Footprint& needed, const Resources& resources);

// Whether the memory limits have room for `needed` now.
inline bool has_room_for(const Footprint& needed, const Resources& resources) {
  return needed.host <= resources.host_memory()->available() && needed.device <= resources.device_memory()->available();
}

// Checks that `least` fits, and returns resources that tell a call how much device memory it may take beyond it.
inline Resources admitted(std::string_view job, const Footprint& least, const Resources& resources) {
  require_memory(job, least, resources);
  return SpareDeviceMemory::with(resources, resources.device_memory()->available() - least.device);
}

// Does the work if the limits have room for least(), its footprint. Work that takes resources learns what is spare.
template <typename Least, typename Work>
decltype(auto) within_limits(std::string_view job, const Resources& resources, const Least& least, const Work& work) {
  if constexpr (std::is_invocable_v<const Work&, const Resources&>) {
    return work(counts_memory(resources) ? admitted(job, least(), resources) : resources);
  } else {
    if (counts_memory(resources)) require_memory(job, least(), resources);
    return work();
  }
}

// The footprint of a public call, which is made with the resources that `call` is given.
template <typename Call>
Footprint footprint_of_call(const Resources& resources, const Call& call) {
  Footprint inside;
  const Resources quiet = resources.with_log({}).with_progress({});
  const Footprint outside = counted(quiet, [&](const Resources& counting) {
    try {
      call(counting);
    } catch (const CountedCall& counted_call) {
      inside = counted_call.footprint;
    }
  });
  return outside.then(inside);
}

// For a call whose footprint is counted by running it.
template <typename Call>
decltype(auto) within_limits(std::string_view job, const Resources& resources, const Call& call) {
  if (!counts_memory(resources)) return call(resources);
  return call(admitted(job, footprint_of_call(resources, call), resources));
}

// Counts a part of the work that states its footprint, beside memory that is held already.
inline void count_work(const Footprint& needed, const Resources& resources) {
  const Reservation counted(needed.host, needed.device, resources);
}

// The same for a public call, made with the resources that it is given.
template <typename Call>
void count_call(const Resources& resources, const Call& call) {
  count_work(footprint_of_call(resources, call), resources);
}

// Makes a public call as a step of the work; if resources only count, counts it instead.
template <typename Call>
void call_or_count(const Resources& resources, const Call& call) {
  if (counts_only(resources)) return count_call(resources, call);
  call(resources);
}

}  // namespace kith
