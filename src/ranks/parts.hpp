// One call shared by the devices of this process, or by parts of one: ranks that are threads (kith/communicator.hpp),
// each with Resources of its own.
//
// The calling thread is the first part, and the only one whose progress is shown. Where a part throws, the others are
// told to stop and the call ends with its error, which says the device. Refused rows are those that one device would
// name: parts before the one that has met such a row go on.
#pragma once

#include <kith/communicator.hpp>
#include <kith/memory_space.hpp>
#include <kith/resources.hpp>

#include "core/within_limits.hpp"
#include "ranks/agreement.hpp"

#include <functional>
#include <string>
#include <vector>

namespace kith {

// Whether a call with these divides its work. What only counts memory does not: a part needs no more than one device.
inline bool is_shared(const Resources& resources) { return resources.parts() > 1 && !only_counts(resources); }

// Whether parts divide work on data in such memory: what lies in a GPU's memory is worked on there.
bool is_divided(const MemorySpace& space, const Resources& resources);

// What errors call the parts: "cuda:1", or "cpu, part 2 of 3".
std::vector<std::string> part_names(const Resources& resources);

// Runs work(ranks, resources of the part) for every part, at the same time, and returns when all are done.
using PartWork = std::function<void(Communicator& ranks, const Resources& part)>;
void run_parts(const Resources& resources, const PartWork& work);

// The same for groups of parts, each of which shares its work once more: `groups` divides the number of parts, and
// consecutive ones belong together.
using GroupWork = std::function<void(int group, const Resources& resources)>;
void run_groups(int groups, const Resources& resources, const GroupWork& work);

// Deals out `total` of something in consecutive shares, multiples of `unit`: work(share, resources of the part) for
// every share that is not empty.
using ShareWork = std::function<void(RankPart share, const Resources& part)>;
void share_out(int64_t total, int64_t unit, const Resources& resources, const ShareWork& work);

}  // namespace kith
