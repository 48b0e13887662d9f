// What building a graph takes at least, for an error that names the limit with which the whole call would do.
#pragma once

#include <kith/export.hpp>
#include <kith/knn_graph.hpp>

#include <cstdint>

namespace kith {

// On the host, beside the results there.
KITH_EXPORT int64_t smallest_graph_bytes(const MatrixView& x, const KnnGraphParams& params, const Resources& resources);

}  // namespace kith
