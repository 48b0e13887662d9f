// Searches all lists on a GPU by exact search of the vectors, if these are stored as f32 and there is no filter. Exact
// search's kernels read each vector once for more queries than a scan of lists does, and handle vectors that fp16
// cannot distinguish (exact/vicinities_cuda.hpp).
//
// Vectors are first copied into row order, so that ties are in the order of rows. Takes memory in addition to the
// search's, and is skipped if there is none: a copy of the vectors, and the memory of an exact search.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "ivf/search/ivf_search.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class PreparedSegmentCuda;

// Whether exact search is faster than a scan of that many lists for that many queries. Pure.
struct AllListsShape {
  int64_t queries = 0;
  int64_t k = 0;
  int64_t lists = 0;
  int64_t vectors = 0;
  int64_t longest = 0;  // longest list
  bool by_row = false;  // errors are bounded for each vector, since norms differ much: a scan of lists rules out little
  bool repeats = false;  // equal vectors are known, which a scan of lists compares once
};
bool prefers_exact_search(const AllListsShape& shape);

// The lists of an index on a device.
struct ListsOnDevice {
  int device = 0;
  Metric metric = Metric::l2;
  int64_t lists = 0;
  int64_t rows = 0;
  const std::vector<std::shared_ptr<const PreparedSegmentCuda>>& parts;
};

// Searches by exact search if that suits and there is room; false: nothing was done. Waits for its end.
bool search_all_lists(const ListsOnDevice& lists, const MatrixView& queries, const IvfSearch& search,
                      const NeighborsView& out, const Resources& resources);

}  // namespace kith
