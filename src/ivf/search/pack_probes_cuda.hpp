// List numbers as exact search gives them, packed as the search of lists takes them (probe_pairs_cuda.hpp).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// -1 becomes padding. Enqueues and returns.
void launch_pack_probes(const int64_t* lists, int64_t count, uint64_t* packed, cudaStream_t stream);

}  // namespace kith
