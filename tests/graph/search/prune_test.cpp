// Pruning: by the rule as it is written down, and its ratios.
#include "graph/search/build/prune.hpp"

#include "graph/search/build/link_places.hpp"
#include "graph/search/graph/walk_coder.hpp"
#include "graph/search/graph/walk_view.hpp"
#include "index/index_check.hpp"
#include "reference/data.hpp"

#include <kith/knn_graph.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace kith {
namespace {

int64_t squares(const int8_t* a, const int8_t* b, int64_t cols) {
  int64_t sum = 0;
  for (int64_t c = 0; c < cols; ++c) sum += (int64_t{a[c]} - b[c]) * (int64_t{a[c]} - b[c]);
  return sum;
}

// What is kept of a place's candidates, by (key, place).
std::vector<uint32_t> slowly_pruned(const HostArray<std::byte>& codes, int64_t stride, uint32_t place,
                                    std::vector<uint32_t> candidates, int64_t degree, int64_t kept_by, int64_t by) {
  const auto key = [&](uint32_t a, uint32_t b) {
    const auto* const all = reinterpret_cast<const int8_t*>(codes.data());
    return squares(all + a * stride, all + b * stride, stride);
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](uint32_t a, uint32_t b) { return std::pair(key(place, a), a) < std::pair(key(place, b), b); });
  std::vector<uint32_t> kept;
  for (const uint32_t c : candidates) {
    const bool dropped =
        std::any_of(kept.begin(), kept.end(), [&](uint32_t s) { return kept_by * key(s, c) < by * key(place, c); });
    if (!dropped && std::ssize(kept) < degree) kept.push_back(c);
  }
  return kept;
}

TEST(Prune, KeepsWhatTheRuleKeepsAndLinksBothWays) {
  const auto rows = reference::make_floats(reference::Shape::gaussian, 400, 10, 1);
  const WalkCoder coder = WalkCoder::choose(rows.view(), Metric::l2, 0, on_cpu());
  HostArray<std::byte> codes(400 * coder.place_bytes(), "codes", on_cpu());
  coder.encode_all(rows.view(), codes.data(), on_cpu());
  const WalkRows walked = coder.rows_of(codes.data(), 400);
  Neighbors nearest(400, 64, on_cpu());
  knn_graph(walked.values, nearest.view(), {.k = 64, .metric = Metric::sqeuclidean, .method = GraphMethod::exact},
            on_cpu());
  struct Alpha {
    int64_t degree, kept, place;
  };
  for (const Alpha& alpha : {Alpha{16, 1, 1}, Alpha{32, 1, 1}, Alpha{48, 121, 100}, Alpha{64, 36, 25}}) {
    SCOPED_TRACE(alpha.degree);
    std::vector<std::vector<uint32_t>> chosen(400);
    std::vector<std::vector<uint32_t>> offered(400);
    for (uint32_t place = 0; place < 400; ++place) {
      const std::vector<uint32_t> all(nearest.ids(place), nearest.ids(place) + 64);
      chosen[place] = slowly_pruned(codes, coder.place_bytes(), place, all, alpha.degree, alpha.kept, alpha.place);
      for (const uint32_t other : chosen[place]) offered[other].push_back(place);
    }
    const HostArray<uint32_t> edges = link_places(walked, nearest.view(), alpha.degree, on_cpu());
    for (uint32_t place = 0; place < 400; ++place) {
      std::vector<uint32_t> both = chosen[place];
      for (const uint32_t other : offered[place]) {
        if (std::find(both.begin(), both.end(), other) == both.end()) both.push_back(other);
      }
      std::vector<uint32_t> list =
          slowly_pruned(codes, coder.place_bytes(), place, both, alpha.degree, alpha.kept, alpha.place);
      list.resize(static_cast<size_t>(alpha.degree), kNoEdge);
      const uint32_t* const found = edges.data() + place * alpha.degree;
      ASSERT_EQ(std::vector<uint32_t>(found, found + alpha.degree), list);
    }
  }
}

}  // namespace
}  // namespace kith
