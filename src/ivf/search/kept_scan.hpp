// Compares some vectors of all lists with a few queries, one vector at a time: fast f32 sums over each vector, in place
// or decoded, bound its key; keys are computed for those that may be among the k nearest. Nothing is packed for
// products, and lists are not ranked.
//
// Cost: a read of every vector, and about 0.1 ns per value and query. Memory: 12 bytes for each query and vector.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "ivf/scan/list_scan.hpp"

#include <cstdint>
#include <span>

namespace kith {

// For more queries than this, decoding all vectors for products is faster.
inline constexpr int64_t kMostKeptScanQueries = 8;

// The nearest of the vectors at these places; rows and distances to `out`, whose places beyond them are left alone.
// Keys are those of decoded vectors (not has_norm_keys).
void scan_kept(const ListedVectors& vectors, std::span<const uint32_t> places, const MatrixView& queries,
               const NeighborsView& out, const Resources& resources);
int64_t kept_scan_bytes(const IvfModel& model, int64_t places, int64_t queries, const Resources& resources);

}  // namespace kith
