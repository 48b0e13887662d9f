// Searches lists that do not fit a GPU's memory limit: they stay in host memory and are copied to the GPU in pieces, in
// the order of lists. Queries, their ranked lists and the best neighbours so far stay on the GPU
// (list_backend_cuda.hpp). What pieces find is merged by (distance, row), so results are the same as for lists in GPU
// memory.
//
// One stream copies, as far ahead as there are slots of device memory (piece_slots_cuda.hpp); the search's stream
// prepares and searches each piece when it has come. Events order both; the host waits only for the counts of probes, and
// to stay within two pieces of the search. A piece is searched for those queries that probe it; after the first two, one
// that no query probes is not copied.
//
// A sample of all lists bounds each query's search from the beginning: its k-th neighbour there is no nearer than its
// k-th in all lists. So a piece without a query's nearest lists takes little time.
//
// Time: that of copying all lists over the bus, if that takes longer than the searches, and the search of the last
// piece; once for each batch of queries that the GPU has room for. The lists' host memory is pinned by the first search
// (host_lists_cuda.hpp), if the system allows it, and stays pinned. GPU memory: three pieces with the least search, in
// three eighths of what is free, or fewer, of at least the longest list; and a search of one piece.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "ivf/search/ivf_search.hpp"
#include "ivf/search/list_backend_cuda.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace kith {

// Whether a search with these resources may be in pieces: a GPU with a limit was named, and it holds no list.
bool may_be_in_pieces(int device, const std::vector<SharedSegment>& segments, const Resources& resources);

// Segments on the host that are searched on a device.
struct PiecedLists {
  int device = 0;
  const IvfModel& model;
  std::shared_ptr<const GpuModelCuda> there;  // the model
  const std::vector<SharedSegment>& segments;
};

// A search of all pieces, which are as `like` and no larger. Where memory is only counted there are none.
using SearchPieces = std::function<void(const std::shared_ptr<const PreparedSegmentCuda>& like, const InPieces& pieces,
                                        const IvfSearch& search, const Resources& resources)>;

// Where memory is only counted: what the smallest piece takes.
void search_in_pieces(const PiecedLists& lists, const MatrixView& queries, const IvfSearch& search,
                      const SearchPieces& search_pieces, const Resources& resources);

}  // namespace kith
