#include "kernels/select/neighbor_sort.hpp"

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

// Runs of keys and of packed neighbours, in any order, have the order of all of them together.
TEST(NeighborSort, SortsFromRuns) {
  const CounterRng rng(3, 4);
  for (const int64_t run_length : {1, 7, 300, 2000}) {
    for (const int kind : {0, 1, 2, 3}) {  // keys; packed; both; both, and rows that do not ascend
      for (const float spread : {0.0f, 1e-6f, 50.0f}) {
        constexpr int64_t kRuns = 11;
        std::vector<float> keys;
        for (int64_t i = 0; i < kRuns * run_length; ++i) {
          keys.push_back(1 + spread * (rng.uniform(static_cast<uint64_t>(i)) - 0.5f));
        }
        keys[0] = -0.0f;
        std::vector<uint64_t> expected;
        std::vector<std::vector<uint64_t>> packed(kRuns);
        std::vector<NeighborRun> runs;
        for (int64_t r = 0; r < kRuns; ++r) {
          const auto first = static_cast<uint32_t>(r * run_length);
          for (uint32_t i = first; i < first + run_length; ++i) {
            const uint32_t row = kind == 3 && r == 4 ? 2 * first - i + 5000 : i;
            packed[static_cast<size_t>(r)].push_back(pack_neighbor(ordered_key(keys[i]), row));
          }
          const bool alone = kind == 0 || (kind >= 2 && r % 2 == 0 && !(kind == 3 && r == 4));
          const auto& own = packed[static_cast<size_t>(r)];
          const auto count = static_cast<uint32_t>(run_length);
          runs.push_back(alone ? NeighborRun{nullptr, keys.data() + first, first, count}
                               : NeighborRun{own.data(), nullptr, 0, count});
          expected.insert(expected.end(), own.begin(), own.end());
        }
        std::sort(expected.begin(), expected.end());
        std::swap(runs[2], runs[7]);
        const auto count = static_cast<int64_t>(expected.size());
        for (const bool with_scratch : {true, false}) {
          std::vector<uint64_t> sorted(expected.size());
          std::vector<uint64_t> scratch(expected.size());
          sort_runs(runs, count, sorted.data(), with_scratch ? scratch.data() : nullptr);
          EXPECT_EQ(sorted, expected) << run_length << " " << kind << " " << spread;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kith
