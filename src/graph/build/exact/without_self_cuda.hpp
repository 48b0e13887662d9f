// without_self.hpp in the memory of a GPU.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>

#include <cstdint>

namespace kith {

// `found`, out.k + 1 of each row, and `out` lie on one device. Enqueues on the resources' stream, or waits where it is none.
void put_without_self_cuda(const NeighborsView& found, int64_t first, const NeighborsView& out, const Resources& resources);

}  // namespace kith
