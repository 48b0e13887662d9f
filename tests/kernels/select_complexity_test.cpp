// Section 4.3 of "Billion-scale similarity search with GPUs" (2019): equations 10 to 13 against counts.
//
// Equations 10-12 describe a scanner of one lane whose threshold is at every step the k-th smallest of all elements
// before ("successive min-k"). (10) is the probability that exactly m of l elements are in it; (11) that there are b
// full sorts, which is b t <= m < (b + 1) t; (12) the expected number of sorts. They are compared with exact counts
// over all permutations. WarpSelect's threshold is as old as its last merge, so for t = 1 it is that scanner, and for
// larger t it may insert more.
//
// (13) bounds the sorts of w lanes, whose threshold is that of the group before. Its second line bounds even pi', where
// every lane that wins a ballot counts; its first line, as printed, has the last lane's probability k / (w c) in group
// c where the argument asks for the first lane's, k / (w (c - 1) + 1), and pi' exceeds it by a little. The sorts that
// happen, one for each group with a winner, are far below both.
#include "kernels/host_warp.hpp"

#include "kernels/select/warp_select.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace kith {
namespace {

// (7)
double in_min_k(int n, int k) { return n <= k ? 1.0 : static_cast<double>(k) / n; }

// (10), for one l and all m.
std::vector<double> gamma_of(int length, int k) {
  std::vector<double> gamma(static_cast<size_t>(length) + 1, 0.0);
  gamma[0] = 1.0;
  for (int l = 1; l <= length; ++l) {
    for (int m = l; m >= 1; --m) {
      const size_t i = static_cast<size_t>(m);
      gamma[i] = gamma[i - 1] * in_min_k(l, k) + gamma[i] * (1.0 - in_min_k(l, k));
    }
    gamma[0] = 0.0;
  }
  return gamma;
}

// (11)
double delta_of(int length, int b, int k, int t) {
  const std::vector<double> gamma = gamma_of(length, k);
  double sum = 0.0;
  for (int m = b * t; m <= std::min(b * t + std::max(0, t - 1), length); ++m) sum += gamma[static_cast<size_t>(m)];
  return sum;
}

// (12)
double pi_of(int length, int k, int t) {
  double sum = 0.0;
  for (int b = 1; b <= length / t; ++b) sum += b * delta_of(length, b, k, t);
  return sum;
}

struct Scan {
  int inserted = 0;
  int sorts = 0;
};

// One lane with the threshold of all elements before.
Scan scan(const std::vector<int>& elements, int k, int t) {
  Scan counts;
  std::vector<int> smallest;
  int waiting = 0;
  for (const int element : elements) {
    if (static_cast<int>(smallest.size()) == k && element > smallest.back()) continue;
    smallest.insert(std::upper_bound(smallest.begin(), smallest.end(), element), element);
    if (static_cast<int>(smallest.size()) > k) smallest.pop_back();
    ++counts.inserted;
    if (++waiting == t) {
      ++counts.sorts;
      waiting = 0;
    }
  }
  return counts;
}

TEST(SelectComplexity, Equations10To12EqualCountsOverAllPermutations) {
  for (int length = 1; length <= 8; ++length) {
    for (int k = 1; k <= length; ++k) {
      for (int t = 1; t <= 3; ++t) {
        SCOPED_TRACE(::testing::Message() << "l " << length << " k " << k << " t " << t);
        std::vector<int> elements(static_cast<size_t>(length));
        std::iota(elements.begin(), elements.end(), 0);
        std::vector<double> with_inserted(static_cast<size_t>(length) + 1, 0.0);
        std::vector<double> with_sorts(static_cast<size_t>(length) + 1, 0.0);
        double permutations = 0;
        double sorts = 0;
        do {
          const Scan counts = scan(elements, k, t);
          with_inserted[static_cast<size_t>(counts.inserted)] += 1;
          with_sorts[static_cast<size_t>(counts.sorts)] += 1;
          sorts += counts.sorts;
          permutations += 1;
        } while (std::next_permutation(elements.begin(), elements.end()));
        const std::vector<double> gamma = gamma_of(length, k);
        for (int m = 0; m <= length; ++m) {
          ASSERT_NEAR(gamma[static_cast<size_t>(m)], with_inserted[static_cast<size_t>(m)] / permutations, 1e-12) << m;
        }
        for (int b = 0; b * t <= length; ++b) {
          ASSERT_NEAR(delta_of(length, b, k, t), with_sorts[static_cast<size_t>(b)] / permutations, 1e-12) << b;
        }
        ASSERT_NEAR(pi_of(length, k, t), sorts / permutations, 1e-12);
      }
    }
  }
}

TEST(SelectComplexity, Equation12HasThePapersClosedForms) {
  const auto harmonic = [](int n) {
    double sum = 0.0;
    for (int i = 1; i <= n; ++i) sum += 1.0 / i;
    return sum;
  };
  EXPECT_NEAR(pi_of(200, 1, 1), harmonic(200), 1e-9);
  EXPECT_NEAR(pi_of(200, 7, 1), 7 + 7 * (harmonic(200) - harmonic(7)), 1e-9);
}

// (13), first line as printed, and second line.
double bound_by_groups(int length, int k, int w) {
  const int filled = (k + w - 1) / w;
  const int groups = (length + w - 1) / w;
  double sum = filled;
  for (int i = 1; i <= groups - filled; ++i) sum += static_cast<double>(k) / (static_cast<double>(w) * (filled + i));
  return w * sum;
}
double bound_by_lanes(int length, int k, int w) { return w * pi_of((length + w - 1) / w, k, 1); }

struct LaneCounts {
  double wins = 0;   // lanes whose entry was below the threshold: pi' for t = 1
  double sorts = 0;  // merges of the queues: pi
};

// Averages over random permutations.
template <int kThread>
LaneCounts count_lanes(int length, int trials) {
  using Warp = HostWarp<uint64_t>;
  std::mt19937 random(7);
  std::vector<uint64_t> entries(static_cast<size_t>(length));
  std::iota(entries.begin(), entries.end(), uint64_t{0});
  LaneCounts counts;
  for (int trial = 0; trial < trials; ++trial) {
    std::shuffle(entries.begin(), entries.end(), random);
    WarpSelect<Warp, 2, kThread> select(64);
    for (size_t first = 0; first < entries.size(); first += 32) {
      const auto group = Warp::each([&](size_t lane) { return entries[first + lane]; });
      for (const bool wins : Warp::less(group, select.threshold())) counts.wins += wins;
      counts.sorts += select.add(group);
    }
  }
  counts.wins /= trials;
  counts.sorts /= trials;
  return counts;
}

TEST(SelectComplexity, Equation13IsNeverExceeded) {
  constexpr int kLanes = 32;
  constexpr int kK = 64;
  for (const int length : {64, 128, 640, 6400}) {
    SCOPED_TRACE(length);
    const LaneCounts one = count_lanes<1>(length, 40);
    EXPECT_LE(one.sorts, bound_by_groups(length, kK, kLanes));
    EXPECT_LE(one.sorts, bound_by_lanes(length, kK, kLanes));
    EXPECT_LE(one.wins, bound_by_lanes(length, kK, kLanes));
    EXPECT_LE(bound_by_groups(length, kK, kLanes), bound_by_lanes(length, kK, kLanes) + 1e-9);
    // Longer queues sort less often, though their threshold is older.
    EXPECT_LE(count_lanes<3>(length, 40).sorts, one.sorts);
  }
}

TEST(SelectComplexity, WinsOfLanesAreThoseOfTheFirstLane) {
  constexpr int kLength = 6400;
  double expected = 0;
  for (int group = 0; group < kLength / 32; ++group) expected += 32 * in_min_k(32 * group + 1, 64);
  EXPECT_NEAR(count_lanes<1>(kLength, 200).wins, expected, 0.02 * expected);
  // The first line of (13) as printed is a little below that.
  EXPECT_GT(expected, bound_by_groups(kLength, 64, 32));
}

}  // namespace
}  // namespace kith
