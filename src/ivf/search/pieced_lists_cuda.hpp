// The search of lists that are larger than what a GPU's memory limit leaves: they stay on the host, and go over to the GPU
// in pieces, in the order of lists. While one piece is searched the next one is copied. What pieces find is put together by
// (distance, row), so that the results are those of lists that lie on the GPU.
//
// Time: the bytes of all lists over the bus, where that takes longer than the searches. The lists' host memory is pinned by
// the first search, where the system allows it, and stays so.
// Memory on the GPU: at least the longest list, up to half of what is left for two pieces; a search of one piece.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "ivf/search/ivf_search.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace kith {

// Whether a search with these resources may be in pieces: a GPU was named, and has a limit, and no list lies there.
bool may_be_in_pieces(int device, const std::vector<SharedSegment>& segments, const Resources& resources);

// A search of segments that lie on the device.
using SearchSegments = std::function<void(const std::vector<SharedSegment>& segments, const MatrixView& queries,
                                          const IvfSearch& search, const NeighborsView& out, const Resources& resources)>;

// Where memory is only counted: what the smallest piece takes. The segments lie on the host.
void search_in_pieces(int device, const IvfModel& model, const std::vector<SharedSegment>& segments,
                      const MatrixView& queries, const IvfSearch& search, const NeighborsView& out,
                      const SearchSegments& search_segments, const Resources& resources);

}  // namespace kith
