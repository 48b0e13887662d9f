// Graph indexes in hnswlib's files, both ways: what it has built is searched here, and the other way round.
#pragma once

#include <kith/export.hpp>
#include <kith/index.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include <string>

namespace kith {

// An index of floats that hnswlib has saved. The file does not say its metric: l2, sqeuclidean, inner_product or cosine
// (whose vectors it keeps at length 1). The lowest layer becomes a Graph index, its labels ids; what was marked as
// deleted is removed. Unsupported for lists of more than 128, CorruptFile for a damaged file: every link is checked,
// but the file has no checksum.
KITH_EXPORT Index read_hnswlib(const std::string& path, Metric metric, const Resources& resources = Resources());

// A file that hnswlib loads, searches and adds to: M is half of the graph's degree, ids are labels, and the upper
// layers are drawn by the index's seed. Unsupported for other indexes than graphs over f32 vectors of these four
// metrics.
KITH_EXPORT void write_hnswlib(const Index& index, const std::string& path, const Resources& resources = Resources());

}  // namespace kith
