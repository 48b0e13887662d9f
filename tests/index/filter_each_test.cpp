// A filter for each query: the bytes of a loop over the queries, on every kind of index and for exact search.
#include <kith/index.hpp>
#include <kith/knn_filters.hpp>

#include "exact/filter_groups.hpp"
#include "index/index_check.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

constexpr int64_t kEachRows = 900;
constexpr int64_t kEachCols = 16;
constexpr int64_t kEachQueries = 12;
constexpr int64_t kEachK = 7;

// Filters of all forms and of few and many rows, some of them equal and in other memory; one keeps nothing.
struct EachFilters {
  explicit EachFilters(int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
      mask.push_back(i % 3 == 0);
      if (i % 50 == 7) few.push_back(rows - 1 - i);
    }
    same_mask = mask;
    same_few = few;
    bits.resize(static_cast<size_t>((rows + 7) / 8), 0b01011101);
    const auto few_of = [](const std::vector<int64_t>& ids) {
      return RowFilter::rows(ids.data(), static_cast<int64_t>(ids.size()));
    };
    each = {RowFilter(),
            few_of(few),
            RowFilter::mask(mask.data(), rows),
            few_of(same_few),
            RowFilter::bits(bits.data(), rows),
            RowFilter::rows(few.data(), 0),
            RowFilter::mask(same_mask.data(), rows),
            few_of(few),
            RowFilter(),
            RowFilter::rows(few.data(), 3),
            RowFilter::mask(mask.data(), rows),
            RowFilter::bits(bits.data(), rows)};
  }

  std::vector<uint8_t> mask, same_mask, bits;
  std::vector<int64_t> few, same_few;
  std::vector<RowFilter> each;
};

Neighbors loop_over(const EachFilters& filters, const MatrixView& queries,
                    const std::function<void(const MatrixView&, const RowFilter&, const NeighborsView&)>& search) {
  Neighbors all(kEachQueries, kEachK, on_cpu());
  const NeighborsView out = all.view();
  for (int64_t i = 0; i < kEachQueries; ++i) {
    search(queries.slice(i, 1), filters.each[static_cast<size_t>(i)],
           {out.ids + i * kEachK, out.distances + i * kEachK, 1, kEachK, {}});
  }
  return all;
}

TEST(FilterEach, EqualFiltersAreOneGroup) {
  const EachFilters filters(kEachRows);
  const std::vector<FilterGroup> groups = group_by_filter(filters.each);
  std::vector<std::vector<int64_t>> queries;
  for (const FilterGroup& group : groups) queries.push_back(group.queries);
  EXPECT_EQ(queries, (std::vector<std::vector<int64_t>>{{0, 8}, {1, 3, 7}, {2, 6, 10}, {4, 11}, {5}, {9}}));
}

class FilterEachOf : public ::testing::TestWithParam<const char*> {};

TEST_P(FilterEachOf, HasTheBytesOfALoop) {
  const Matrix<float> rows = make_floats(Shape::gaussian, kEachRows, kEachCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, kEachQueries, kEachCols, 2);
  Index index(GetParam());
  index.train(rows.view(), on_cpu());
  index.add(rows.view(), Ownership::copy, on_cpu());
  for (const bool some_removed : {false, true}) {
    if (some_removed) index.remove(view({3, 4, 7, 100, 892}), on_cpu());
    const EachFilters filters(index.size());
    SearchParams params = taken_by(index, {.k = kEachK, .probes = 3});
    const Neighbors looped =
        loop_over(filters, queries.view(), [&](const MatrixView& one, const RowFilter& filter, const NeighborsView& out) {
          SearchParams own = params;
          own.filter = filter;
          index.search(one, out, own, on_cpu());
        });
    params.filters = filters.each;
    expect_same(index.search(queries.view(), params, on_cpu()), looped);
    expect_same(index.search(queries.view(), params, on_cpu(kNoLimit, 1)), looped);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FilterEachOf,
                         ::testing::Values("Flat", "SQ8", "IVF8,Flat", "IVF8,PQ4", "IVF8,SQ8,RFlat", "PCA8,SQ4",
                                           "PQ8,Refine(SQ8)", "Graph16", "RaBitQ"));

TEST(FilterEach, WalksHaveTheBytesOfALoop) {
  const Matrix<float> rows = make_floats(Shape::gaussian, 5000, kEachCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, kEachQueries, kEachCols, 2);
  Index index("Graph16");
  index.add(rows.view(), Ownership::copy, on_cpu());
  const EachFilters filters(5000);
  const Neighbors looped =
      loop_over(filters, queries.view(), [&](const MatrixView& one, const RowFilter& filter, const NeighborsView& out) {
        index.search(one, out, {.k = kEachK, .filter = filter, .beam = 20}, on_cpu());
      });
  expect_same(index.search(queries.view(), {.k = kEachK, .filters = filters.each, .beam = 20}, on_cpu()), looped);
}

TEST(FilterEach, ExactSearchHasTheBytesOfALoop) {
  const Matrix<float> rows = make_floats(Shape::gaussian, kEachRows, kEachCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, kEachQueries, kEachCols, 2);
  const EachFilters filters(kEachRows);
  const Neighbors looped =
      loop_over(filters, queries.view(), [&](const MatrixView& one, const RowFilter& filter, const NeighborsView& out) {
        knn(one, rows.view(), out, {.k = kEachK, .filter = filter}, on_cpu());
      });
  const KnnParams params{.k = kEachK};
  expect_same(knn(queries.view(), rows.view(), filters.each, params, on_cpu()), looped);
  // Vectors of f64 lose one offset, all together.
  std::vector<double> far(static_cast<size_t>(kEachRows * kEachCols));
  for (size_t i = 0; i < far.size(); ++i) far[i] = 1e6 + double{rows.values[i]};
  const MatrixView wide(far.data(), DType::f64, {kEachRows, kEachCols, kEachCols});
  const MatrixView asked = wide.slice(0, kEachQueries);
  const Neighbors far_loop =
      loop_over(filters, asked, [&](const MatrixView& one, const RowFilter& filter, const NeighborsView& out) {
        knn(one, wide, out, {.k = kEachK, .filter = filter}, on_cpu());
      });
  expect_same(knn(asked, wide, filters.each, params, on_cpu()), far_loop);
}

TEST(FilterEach, TheNamedLimitWorks) {
  const Matrix<float> rows = make_floats(Shape::gaussian, kEachRows, kEachCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, kEachQueries, kEachCols, 2);
  const EachFilters filters(kEachRows);
  Index index("IVF8,Flat");
  index.train(rows.view(), on_cpu());
  index.add(rows.view(), Ownership::copy, on_cpu());
  const auto check = [](const std::function<void(const Resources&)>& search) {
    int64_t needed = 0;
    try {
      search(on_cpu(1));
    } catch (const OutOfMemory& error) {
      needed = error.bytes_needed();
    }
    ASSERT_GT(needed, 1);
    EXPECT_NO_THROW(search(on_cpu(needed)));
    EXPECT_THROW(search(on_cpu(needed - 1)), OutOfMemory);
  };
  check([&](const Resources& limited) {
    (void)index.search(queries.view(), {.k = kEachK, .filters = filters.each}, limited);
  });
  check([&](const Resources& limited) {
    (void)knn(queries.view(), rows.view(), filters.each, {.k = kEachK}, limited);
  });
}

TEST(FilterEach, ErrorsNameTheQuery) {
  const Matrix<float> rows = make_floats(Shape::gaussian, kEachRows, kEachCols, 1);
  Matrix<float> queries = make_floats(Shape::gaussian, kEachQueries, kEachCols, 2);
  EachFilters filters(kEachRows);
  Index index("Flat");
  index.add(rows.view(), Ownership::copy, on_cpu());
  const auto of_index = [&](bool strict = false) {
    return message_of([&] {
      (void)index.search(queries.view(), {.k = 2, .filters = filters.each, .filter_strict = strict}, on_cpu());
    });
  };
  const auto of_knn = [&] {
    return message_of([&] { (void)knn(queries.view(), rows.view(), filters.each, {.k = 2}, on_cpu()); });
  };
  const RowFilter good = filters.each[4];
  filters.each[4] = RowFilter::mask(filters.mask.data(), kEachRows - 1);
  EXPECT_NE(of_index().find("query 4: the filter is for 899 rows"), std::string::npos) << of_index();
  EXPECT_NE(of_knn().find("query 4: the filter is for 899 rows"), std::string::npos) << of_knn();
  filters.each[4] = good;
  filters.few[2] = kEachRows;  // of query 9; 1 and 7 too
  EXPECT_NE(of_knn().find("query 1: the filter lists row 900 at position 2"), std::string::npos) << of_knn();
  EXPECT_EQ(of_index(), "nothing was thrown");
  EXPECT_NE(of_index(true).find("query 1: the filter's id 900 at position 2"), std::string::npos) << of_index(true);
  filters.few = filters.same_few;
  queries.row(11)[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(of_index().find("query row 11"), std::string::npos) << of_index();
  EXPECT_NE(of_knn().find("query row 11"), std::string::npos) << of_knn();
  filters.each.pop_back();
  EXPECT_NE(of_index().find("11 filters and 12 queries"), std::string::npos) << of_index();
  const std::string both = message_of([&] {
    (void)index.search(queries.view(), {.k = 2, .filter = good, .filters = filters.each}, on_cpu());
  });
  EXPECT_NE(both.find("give one of them"), std::string::npos) << both;
}

// More groups than threads take at a time: each is one thread's.
TEST(FilterEach, ManyGroupsHaveTheBytesOfALoop) {
  constexpr int64_t kMany = 60;
  const Matrix<float> rows = make_floats(Shape::gaussian, kEachRows, kEachCols, 1);
  Matrix<float> queries = make_floats(Shape::gaussian, kMany, kEachCols, 2);
  std::vector<std::vector<int64_t>> lists(kMany);
  std::vector<RowFilter> each;
  for (int64_t i = 0; i < kMany; ++i) {
    auto& list = lists[static_cast<size_t>(i)];
    for (int64_t row = i; row < kEachRows; row += kMany) list.push_back(row);
    each.push_back(RowFilter::rows(list.data(), static_cast<int64_t>(list.size())));
  }
  for (const char* const factory : {"Flat", "IVF8,SQ8"}) {
    Index index(factory);
    index.train(rows.view(), on_cpu());
    index.add(rows.view(), Ownership::copy, on_cpu());
    const SearchParams params{.k = kEachK, .filters = each, .filter_strict = true};
    Neighbors looped(kMany, kEachK, on_cpu());
    const NeighborsView out = looped.view();
    for (int64_t i = 0; i < kMany; ++i) {
      index.search(queries.view().slice(i, 1), {out.ids + i * kEachK, out.distances + i * kEachK, 1, kEachK, {}},
                   {.k = kEachK, .filter = each[static_cast<size_t>(i)]}, on_cpu());
    }
    expect_same(index.search(queries.view(), params, on_cpu(kNoLimit, 2)), looped);
    expect_same(index.search(queries.view(), params, on_cpu(kNoLimit, 4)), looped);
    expect_same(index.search(queries.view(), params, on_cpu(kNoLimit, 1)), looped);
    // The first query with an error is named, whichever thread came first.
    lists[23][2] = lists[57][0] = kEachRows;
    const std::string message = message_of([&] { (void)index.search(queries.view(), params, on_cpu(kNoLimit, 4)); });
    EXPECT_NE(message.find("query 23: the filter's id 900 at position 2"), std::string::npos) << message;
    lists[23][2] = 23 + 2 * kMany;
    lists[57][0] = 57;
    const float value = std::exchange(queries.row(31)[3], std::numeric_limits<float>::quiet_NaN());
    const std::string refused = message_of([&] { (void)index.search(queries.view(), params, on_cpu(kNoLimit, 4)); });
    EXPECT_NE(refused.find("query row 31"), std::string::npos) << refused;
    queries.row(31)[3] = value;
  }
}

TEST(FilterEach, AnEmptyIndexFindsNothing) {
  const Matrix<float> queries = make_floats(Shape::gaussian, 2, kEachCols, 2);
  const Index index("Flat");
  const int64_t id = 5;
  const std::vector<RowFilter> each{RowFilter(), RowFilter::rows(&id, 1)};
  const Neighbors found = index.search(queries.view(), {.k = 2, .filters = each}, on_cpu());
  EXPECT_EQ(found.ids(1)[1], -1);
  const std::string strict = message_of([&] {
    (void)index.search(queries.view(), {.k = 2, .filters = each, .filter_strict = true}, on_cpu());
  });
  EXPECT_NE(strict.find("query 1: the filter's id 5"), std::string::npos) << strict;
}

}  // namespace
}  // namespace kith
