// Searches lists that do not fit a GPU's memory limit: they stay in host memory and are copied to the GPU in pieces, in
// the order of lists. While a piece is searched, the next one is copied. The pieces' results are merged by (distance,
// row), so that they are the same as for lists in GPU memory.
//
// Time: that of copying all lists over the bus, if that takes longer than the searches. The lists' host memory is
// pinned by the first search, if the system allows it, and stays pinned. GPU memory: two pieces, of at least the
// longest list and up to half of the free memory; and a search of one piece.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "ivf/search/ivf_search.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace kith {

// Whether a search with these resources may be in pieces: a GPU with a limit was named, and it holds no list.
bool may_be_in_pieces(int device, const std::vector<SharedSegment>& segments, const Resources& resources);

// A search of segments in device memory.
using SearchSegments = std::function<void(const std::vector<SharedSegment>& segments, const MatrixView& queries,
                                          const IvfSearch& search, const NeighborsView& out, const Resources& resources)>;

// When memory is only counted, counts that of the smallest piece. The segments must be in host memory.
void search_in_pieces(int device, const IvfModel& model, const std::vector<SharedSegment>& segments,
                      const MatrixView& queries, const IvfSearch& search, const NeighborsView& out,
                      const SearchSegments& search_segments, const Resources& resources);

}  // namespace kith
