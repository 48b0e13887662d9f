// Filters that keep few rows of lists: all kept rows are compared, whatever lists they are in, by a rule in counts.
#include <kith/index.hpp>

#include "index/index_check.hpp"
#include "ivf/search/ivf_search.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

constexpr int64_t kSelectRows = 800;
constexpr int64_t kSelectCols = 20;

TEST(SelectiveFilter, TheRuleIsInCounts) {
  EXPECT_TRUE(kept_decide(50, 200000, 21, 447));
  EXPECT_FALSE(kept_decide(100, 1000, 1, 10));  // as many as the probed list holds
  EXPECT_TRUE(kept_decide(99, 1000, 1, 10));
  EXPECT_TRUE(kept_decide(0, 1, 1, 4));
}

class SelectiveFilterOf : public ::testing::TestWithParam<const char*> {};

TEST_P(SelectiveFilterOf, FewKeptRowsAreFoundInAllLists) {
  const Matrix<float> rows = make_floats(Shape::gaussian, kSelectRows, kSelectCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, 9, kSelectCols, 2);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
    Index index(GetParam(), {.metric = metric});
    index.train(rows.view(), on_cpu());
    index.add(rows.view().slice(0, 500), Ownership::copy, on_cpu());
    index.add(rows.view().slice(500, kSelectRows - 500), Ownership::copy, on_cpu());
    std::vector<int64_t> ids;
    std::vector<uint8_t> mask(kSelectRows, 0);
    std::vector<uint8_t> bits(kSelectRows / 8, 0);
    for (int64_t i = 3; i < kSelectRows; i += 41) {
      ids.push_back(kSelectRows - 1 - i);
      mask[static_cast<size_t>(kSelectRows - 1 - i)] = 1;
      bits[static_cast<size_t>((kSelectRows - 1 - i) / 8)] |= static_cast<uint8_t>(1 << ((kSelectRows - 1 - i) % 8));
    }
    ids.push_back(ids.front());  // counts once
    const auto count = static_cast<int64_t>(ids.size());
    const auto search = [&](const RowFilter& filter, int64_t probes, int64_t first, int64_t some) {
      return index.search(queries.view().slice(first, some),
                          taken_by(index, {.k = 6, .filter = filter, .probes = probes}), on_cpu());
    };
    const RowFilter listed = RowFilter::rows(ids.data(), count);
    const Neighbors all = search(listed, kAll, 0, 9);
    expect_same(all, search(listed, 1, 0, 9));
    expect_same(all, search(RowFilter::mask(mask.data(), kSelectRows), 1, 0, 9));
    expect_same(all, search(RowFilter::bits(bits.data(), kSelectRows), 1, 0, 9));
    const Neighbors one = search(listed, 1, 4, 1);
    EXPECT_EQ(std::memcmp(one.ids(), all.ids(4), 6 * sizeof(int64_t)), 0);
    // A range too.
    const float radius = all.distances(2)[5];
    const auto range = [&](int64_t probes) {
      return index.range_search(
          queries.view(), range_taken_by(index, {.radius = radius, .filter = listed, .probes = probes}), on_cpu());
    };
    const RangeNeighbors near = range(1);
    const RangeNeighbors whole = range(kAll);
    ASSERT_EQ(near.size(), whole.size());
    EXPECT_EQ(std::memcmp(near.ids(), whole.ids(), static_cast<size_t>(near.size()) * sizeof(int64_t)), 0);
    // Rows that are gone count neither before nor after compaction.
    std::vector<int64_t> gone;
    for (int64_t i = 0; i < kSelectRows / 8; ++i) gone.push_back(8 * i);
    std::erase_if(ids, [](int64_t id) { return id % 8 == 0; });
    index.remove(view(gone), on_cpu());
    const RowFilter left = RowFilter::rows(ids.data(), static_cast<int64_t>(ids.size()));
    const Neighbors before = search(left, 1, 0, 9);
    index.compact(on_cpu());
    expect_same(before, search(left, 1, 0, 9));
  }
}

// Few queries are compared with the vectors as they lie, by tables of their places where these may be kept; more with
// what they are decoded to.
TEST_P(SelectiveFilterOf, OneQueryFindsWhatManyFind) {
  const Matrix<float> rows = make_floats(Shape::gaussian, kSelectRows, kSelectCols, 3);
  const Matrix<float> queries = make_floats(Shape::gaussian, 20, kSelectCols, 4);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
    for (const int64_t apart : {9, 90, 799}) {  // 89 kept vectors, 9, and fewer than k
      std::vector<uint8_t> mask(kSelectRows, 0);
      for (int64_t i = 1; i < kSelectRows; i += apart) mask[static_cast<size_t>(i)] = 1;
      const RowFilter filter = RowFilter::mask(mask.data(), kSelectRows);
      std::vector<Neighbors> found;
      for (const bool prepare : {true, false}) {
        Index index(GetParam(), {.metric = metric, .prepare = prepare});
        index.train(rows.view(), on_cpu());
        index.add(rows.view().slice(0, 300), Ownership::copy, on_cpu());
        index.add(rows.view().slice(300, kSelectRows - 300), Ownership::copy, on_cpu());
        const auto search = [&](int64_t first, int64_t count) {
          return index.search(queries.view().slice(first, count),
                              taken_by(index, {.k = 7, .filter = filter, .probes = kAll}), on_cpu());
        };
        const Neighbors together = search(0, 20);
        for (const int64_t count : {1, 2, 8}) {
          const Neighbors some = search(3, count);
          for (int64_t q = 0; q < count; ++q) {
            EXPECT_EQ(std::memcmp(some.ids(q), together.ids(q + 3), 7 * sizeof(int64_t)), 0);
            EXPECT_EQ(std::memcmp(some.distances(q), together.distances(q + 3), 7 * sizeof(float)), 0);
          }
        }
        found.push_back(search(0, 5));
      }
      expect_same(found[0], found[1]);
    }
  }
}

// The filter keeps as many as the probed lists hold: these alone are searched.
TEST_P(SelectiveFilterOf, ManyKeptRowsAreFoundInTheProbedLists) {
  const Matrix<float> rows = make_floats(Shape::gaussian, kSelectRows, kSelectCols, 1);
  Index index(GetParam());
  index.train(rows.view(), on_cpu());
  index.add(rows.view(), Ownership::copy, on_cpu());
  std::vector<uint8_t> mask(kSelectRows, 1);
  mask[5] = 0;
  const RowFilter filter = RowFilter::mask(mask.data(), kSelectRows);
  const Neighbors found =
      index.search(rows.view().slice(0, 5), taken_by(index, {.k = 5, .filter = filter, .probes = 1}), on_cpu());
  const Neighbors plain = index.search(rows.view().slice(0, 5), taken_by(index, {.k = 6, .probes = 1}), on_cpu());
  for (int64_t q = 0; q < 5; ++q) {  // less the row that is left out
    int64_t at = 0;
    for (int64_t i = 0; i < 6 && at < 5; ++i) {
      if (plain.ids(q)[i] == 5) continue;
      EXPECT_EQ(found.ids(q)[at++], plain.ids(q)[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SelectiveFilterOf,
                         ::testing::Values("IVF16,Flat", "IVF16,SQfp16", "SQ8", "IVF16,SQ8", "PQ5", "IVF4,PQ5", "IVF16,PQ5", "IVF16,RQ2x8",
                                           "PCA10,IVF16,SQ8", "IVF16,PQ5,RFlat"));

}  // namespace
}  // namespace kith
