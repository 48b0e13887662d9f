// Graphs that the calls work on: of all rows, and of either half.
#pragma once

#include "limits/call_data.hpp"

#include <kith/knn_graph.hpp>

namespace kith::testing {

inline constexpr int64_t kHalf = 750;

inline MatrixView first_half() { return base_rows().view().slice(0, kHalf); }
inline MatrixView second_half() { return base_rows().view().slice(kHalf, kHalf); }

inline const KnnGraph& graph_of_all() {
  static const KnnGraph graph = knn_graph(base_rows().view(), {.k = 6, .method = GraphMethod::exact});
  return graph;
}
inline const KnnGraph& graph_of_half(int half) {
  static const KnnGraph graphs[2] = {knn_graph(first_half(), {.k = 6, .method = GraphMethod::exact}),
                                     knn_graph(second_half(), {.k = 6, .method = GraphMethod::exact})};
  return graphs[half];
}

}  // namespace kith::testing
