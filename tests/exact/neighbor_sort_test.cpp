#include "exact/neighbor_sort.hpp"

#include "core/ordered_key.hpp"
#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace kith {
namespace {

void expect_sorted(std::vector<uint64_t> neighbors) {
  std::vector<uint64_t> expected = neighbors;
  std::sort(expected.begin(), expected.end());
  std::vector<uint64_t> compared = neighbors;
  std::vector<uint64_t> scratch(neighbors.size());
  sort_neighbors(neighbors.data(), static_cast<int64_t>(neighbors.size()), scratch.data());
  sort_neighbors(compared.data(), static_cast<int64_t>(compared.size()), nullptr);
  EXPECT_EQ(neighbors, expected);
  EXPECT_EQ(compared, expected);
}

TEST(NeighborSort, PutsKeysAndRowsInOrder) {
  const CounterRng rng(1, 2);
  for (const int64_t count : {0, 1, 1023, 1024, 1500, 40000}) {
    for (const uint32_t rows : {1u, 7u, 5000u, 0x7FFFFFFFu}) {
      for (const bool ascending : {false, true}) {
        std::vector<uint64_t> neighbors;
        for (int64_t i = 0; i < count; ++i) {
          const auto at = static_cast<uint64_t>(2 * i);
          const float key = rng.uniform(at) - 0.5f;
          const auto row = rng.below(at + 1, rows);
          neighbors.push_back(pack_neighbor(ordered_key(key), ascending ? static_cast<uint32_t>(i) : row));
        }
        expect_sorted(neighbors);
      }
    }
  }
}

TEST(NeighborSort, TakesEqualAndExtremeKeys) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float keys[] = {0.0f, -0.0f, kInfinity, -kInfinity, NAN, 1e-45f, 3e38f, -3e38f};
  std::vector<uint64_t> equal;
  std::vector<uint64_t> extreme;
  for (uint32_t i = 0; i < 4000; ++i) {
    equal.push_back(pack_neighbor(ordered_key(1.5f), 3999 - i));
    extreme.push_back(pack_neighbor(ordered_key(keys[i % 8]), i * 0x80001u));
  }
  expect_sorted(equal);
  expect_sorted(extreme);
}

}  // namespace
}  // namespace kith
