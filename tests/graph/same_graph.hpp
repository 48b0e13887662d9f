// That two graphs are the same bytes.
#pragma once

#include <kith/knn_graph.hpp>

#include <gtest/gtest.h>

#include <cstring>

namespace kith {

inline void expect_same_bytes(const KnnGraph& expected, const NeighborsView& found) {
  ASSERT_EQ(expected.rows(), found.queries);
  ASSERT_EQ(expected.k(), found.k);
  for (int64_t i = 0; i < expected.rows(); ++i) {
    for (int64_t j = 0; j < expected.k(); ++j) {
      const int64_t at = i * found.k + j;
      ASSERT_EQ(expected.ids(i)[j], found.ids[at])
          << "row " << i << " place " << j << ": " << expected.distances(i)[j] << " and " << found.distances[at];
    }
    ASSERT_EQ(std::memcmp(expected.distances(i), found.distances + i * found.k,
                          sizeof(float) * static_cast<size_t>(expected.k())),
              0)
        << "row " << i << " has other distances";
  }
}

inline void expect_same_bytes(const KnnGraph& expected, Neighbors found) { expect_same_bytes(expected, found.view()); }

// Wherever the second one lies.
inline void expect_same_bytes(const KnnGraph& expected, const KnnGraph& given) {
  const KnnGraph found = given.to(MemorySpace::host());
  expect_same_bytes(expected, {const_cast<int64_t*>(found.ids()), const_cast<float*>(found.distances()), found.rows(),
                               found.k(), found.space()});
}

}  // namespace kith
