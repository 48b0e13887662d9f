// Divides a call among the devices of this process, or parts of one: ranks that are threads (kith/communicator.hpp),
// each with Resources of its own.
//
// The calling thread is the first part, the only one that reports progress. If a part throws, the others stop and the
// call ends with its error, which names the device. An error about a refused row names the row that one device would:
// parts before the one that found it continue.
#pragma once

#include <kith/communicator.hpp>
#include <kith/memory_space.hpp>
#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "core/within_limits.hpp"
#include "ranks/agreement.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

// Whether a call with these resources divides its work. Counting does not: a part needs no more than one device.
inline bool is_shared(const Resources& resources) { return resources.parts() > 1 && !counts_only(resources); }

// Whether parts divide work on data in such memory: data in a GPU's memory is processed there.
bool is_divided(const MemorySpace& space, const Resources& resources);

// The names of the parts in errors: "cuda:1", or "cpu, part 2 of 3".
std::vector<std::string> part_names(const Resources& resources);

// Runs work(ranks, resources of the part) for every part, at the same time, and returns when all are done.
using PartWork = std::function<void(Communicator& ranks, const Resources& part)>;
void run_parts(const Resources& resources, const PartWork& work);

// The same for groups of consecutive parts, each of which divides its work again; `groups` must divide the number of
// parts.
using GroupWork = std::function<void(int group, const Resources& resources)>;
void run_groups(int groups, const Resources& resources, const GroupWork& work);

// Divides `total` items into consecutive shares, multiples of `unit`, and calls work(share, resources of the part) for
// every share that is not empty.
using ShareWork = std::function<void(RankPart share, const Resources& part)>;
void share_out(int64_t total, int64_t unit, const Resources& resources, const ShareWork& work);

// Deals out steps of unlike cost: work(step, resources of the part) for each. One device does them in their order, with
// `resources` as they are. Of refused rows those of the first step are named.
using StepWork = std::function<void(int64_t step, const Resources& part)>;
void deal_steps(int64_t steps, const Resources& resources, const StepWork& work);

// Whether all devices are of one kind.
bool are_of_one_kind(const Resources& resources);

// The most that any part of `job` needs, if every part's share of the limits, or of what its GPU has free, has room for
// that; otherwise logs that the first device does the job alone, and returns nothing. needs(resources of the part):
// parts with more threads need more.
using PartNeeds = std::function<Footprint(const Resources& part)>;
std::optional<Footprint> needed_if_all_have_room(std::string_view job, const Resources& resources,
                                                 const PartNeeds& needs);

// The resources themselves, if all parts have room for `job`; otherwise those of the first device.
Resources all_parts_or_first(std::string_view job, const Resources& resources, const PartNeeds& needs);

}  // namespace kith
