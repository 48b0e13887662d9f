// Launches what finding entries (walk_entries.hpp) needs of a graph on a GPU beside walks: its connected parts, which
// places their walks have missed, and lists that have changed on the host.
#pragma once

#include "graph/search/build/walk_entries.hpp"
#include "graph/search/walk/walk_task_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Enqueues: parts[i] becomes the smallest place that edges, taken both ways, join with place i.
void launch_connected_parts(const uint32_t* edges, int64_t places, int64_t degree, uint32_t* parts,
                            cudaStream_t stream);

// Enqueues: of the places that were walked to (task.queries.list), those that are not found go to `lost`, in any order,
// and are counted. `lost` has room for all.
void launch_lost_places(const WalkTaskCuda& task, LostPlace* lost, uint32_t* count, cudaStream_t stream);

// Enqueues: the lists of these places become `lists`, one after the other.
void launch_replace_lists(const uint32_t* places, const uint32_t* lists, int64_t count, int64_t degree, uint32_t* edges,
                          cudaStream_t stream);

}  // namespace kith
