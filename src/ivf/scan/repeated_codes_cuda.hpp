// Which vectors of a list repeat others. Equal codes of a list are equal vectors, and of any number of these a search for
// k neighbours finds the k with the smallest rows at most. Where thousands are equal (lists far apart, of codes that tell
// their vectors no more apart) they all are within every bound, and queries have more candidates than there is room for:
// unless those are passed over that have k equal ones before them.
//
// Codes are counted by their hashes in a block's memory; only lists in which some counter is large are looked at once
// more, in the order of their rows. Lists of more than 65,536 vectors are left as they are.
// Memory: 2 bytes a vector, where anything repeats so often.
#pragma once

#include "ivf/segment/device_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

inline constexpr uint32_t kLeastRepeats = 256;  // fewer have room among a query's candidates

// Raises `most`, on the device, to about how often the most frequent code of a list occurs in it; never to less. Enqueues
// and returns.
void launch_count_repeats(const DeviceListsView& lists, uint32_t* most, cudaStream_t stream);

// Of each vector how many equal ones with smaller rows its list has, up to 65,535; 0 where that is not known. Enqueues and
// returns.
void launch_rank_repeats(const DeviceListsView& lists, uint16_t* ranks, cudaStream_t stream);

}  // namespace kith
