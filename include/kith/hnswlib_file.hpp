// Reading and writing graph indexes in hnswlib's files.
#pragma once

#include <kith/export.hpp>
#include <kith/index.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include <string>

namespace kith {

// An index of floats that hnswlib saved. The file does not name its metric: l2, sqeuclidean, inner_product or cosine
// (for which hnswlib stores vectors of length 1). The lowest layer becomes a Graph index and labels become ids; vectors
// marked as deleted are dropped. Unsupported for more than 128 neighbours per vector; CorruptFile for a damaged file:
// all links are checked, but the file has no checksum.
KITH_EXPORT Index read_hnswlib(const std::string& path, Metric metric, const Resources& resources = Resources());

// A file that hnswlib can load, search and add to: M is half of the graph's degree, ids become labels, and the index's
// seed draws the upper layers. Only for graph indexes of f32 vectors with one of these four metrics, otherwise
// Unsupported.
KITH_EXPORT void write_hnswlib(const Index& index, const std::string& path, const Resources& resources = Resources());

}  // namespace kith
