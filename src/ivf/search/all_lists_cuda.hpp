// Searches of all lists on a GPU, where that is exact search of the vectors: of f32 as they were given, without a
// filter. Exact search's kernels read each vector once for more queries than a scan of lists does, and have ways with
// vectors that halves cannot tell apart (exact/vicinities_cuda.hpp).
//
// Vectors are copied to the places of their rows first, so that equal distances are in the order of rows. Memory beyond
// the search's, which it does without where there is none: the vectors once more, and that of an exact search.
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

// Whether exact search is sooner than a scan of so many lists by all of which so many queries look. Pure.
struct AllListsShape {
  int64_t queries = 0;
  int64_t k = 0;
  int64_t lists = 0;
  int64_t vectors = 0;
  int64_t longest = 0;  // list
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
