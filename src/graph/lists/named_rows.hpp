// Rows that lists are offered by their ids: neighbours of a graph, or what a search found.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/memory_space.hpp>

#include <algorithm>
#include <cstdint>

namespace kith {

struct NamedRows {
  const int64_t* ids = nullptr;  // count x k, each row's -1 at its end
  int64_t count = 0;
  int64_t k = 0;
  int64_t most = 0;      // the first so many of each; no more than k
  int64_t first = 0;     // the list that the first are offered to; the others follow
  int64_t first_id = 0;  // the row that is meant by id 0
  MemorySpace space = MemorySpace::host();
};

// The first neighbours of a graph whose rows are first, first + 1, ... of the collection.
inline NamedRows named_by(const KnnGraph& graph, int64_t first, int64_t most) {
  return {graph.ids(), graph.rows(), graph.k(), std::min(most, graph.k()), first, first, graph.space()};
}

}  // namespace kith
