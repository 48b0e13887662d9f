// Searches some queries of a batch again, in groups.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "graph/handle/graph_output.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kith {

inline constexpr int64_t kSearchedAgain = 256;  // together

// Buffers for a group of queries and their neighbours.
struct SomeQueries {
  SomeQueries(DType dtype, int64_t cols, int64_t k, int64_t total, const Resources& resources)
      : together(std::min(kSearchedAgain, total)),
        queries(dtype, together, cols, "queries that are searched again", resources),
        found(together, k, resources) {}

  const int64_t together;
  MatrixBuffer queries;
  Neighbors found;
};

// For the queries with these numbers, in host memory: search(some, part, first) finds the neighbours of which[first]
// and the following ones.
template <typename Search>
void search_some(const std::vector<int64_t>& which, const MatrixView& queries, const NeighborsView& out,
                 const Resources& resources, const Search& search) {
  const auto row_bytes = static_cast<size_t>(queries.cols() * size_of(queries.dtype()));
  const auto total = static_cast<int64_t>(which.size());
  SomeQueries room(queries.dtype(), queries.cols(), out.k, total, resources);
  for (int64_t first = 0; first < total; first += room.together) {
    const int64_t count = std::min(room.together, total - first);
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(room.queries.mutable_view().row(i), queries.row(which[static_cast<size_t>(first + i)]), row_bytes);
    }
    NeighborsView part = room.found.view();
    part.queries = count;
    search(room.queries.view().slice(0, count), part, first);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t query = which[static_cast<size_t>(first + i)];
      const NeighborsView one{part.ids + i * out.k, part.distances + i * out.k, 1, out.k, part.space};
      copy_neighbors(one, {out.ids + query * out.k, out.distances + query * out.k, 1, out.k, out.space}, resources);
    }
  }
}

}  // namespace kith
