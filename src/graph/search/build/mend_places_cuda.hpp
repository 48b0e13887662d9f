// Launches the steps of finding entries (walk_entries.hpp) on a GPU other than walks: connected components, the places
// that their walks missed, and updates of lists changed on the host.
#pragma once

#include "graph/search/build/walk_entries.hpp"
#include "graph/search/walk/walk_task_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Enqueues: parts[i] becomes the smallest place connected with place i by edges, taken in both directions.
void launch_connected_parts(const uint32_t* edges, int64_t places, int64_t degree, uint32_t* parts,
                            cudaStream_t stream);

// Enqueues: writes the places searched for (task.queries.list) but not found to `lost`, in any order, and counts them.
// `lost` must have room for all.
void launch_lost_places(const WalkTaskCuda& task, LostPlace* lost, uint32_t* count, cudaStream_t stream);

// Enqueues: replaces the lists of these places by `lists`, which are contiguous.
void launch_replace_lists(const uint32_t* places, const uint32_t* lists, int64_t count, int64_t degree, uint32_t* edges,
                          cudaStream_t stream);

}  // namespace kith
