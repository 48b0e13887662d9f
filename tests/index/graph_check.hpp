// What tests of graph indexes share: how one is made, and its recall.
#pragma once

#include <kith/index.hpp>
#include <kith/knn.hpp>

#include "index/index_check.hpp"
#include "reference/sanitized.hpp"

namespace kith {

// Enough for walks: exact search of fewer is no more work.
inline int64_t walked_rows() { return reference::fewer_if_sanitized(9000, 6000); }

inline Index graph_of(const MatrixView& rows, const char* factory = "Graph16", Metric metric = Metric::l2,
                      int threads = 2) {
  Index index(factory, {.metric = metric});
  if (!index.trained()) index.train(rows, on_cpu(kNoLimit, threads));
  index.add(rows, Ownership::copy, on_cpu(kNoLimit, threads));
  return index;
}

// The share of found neighbours that are as near as the last true one.
inline double recall_of(const Index& index, const Neighbors& found, const MatrixView& queries, const MatrixView& rows,
                        const RowFilter& filter = {}) {
  const Metric metric = index.params().metric;
  const Neighbors truth = knn(queries, rows, {.k = found.k(), .metric = metric, .filter = filter}, on_cpu());
  int64_t right = 0;
  for (int64_t q = 0; q < found.queries(); ++q) {
    const float last = truth.distances(q)[found.k() - 1];
    for (int64_t i = 0; i < found.k(); ++i) {
      const float distance = found.distances(q)[i];
      right += found.ids(q)[i] >= 0 && (larger_is_nearer(metric) ? distance >= last : distance <= last) ? 1 : 0;
    }
  }
  return static_cast<double>(right) / static_cast<double>(found.queries() * found.k());
}

}  // namespace kith
