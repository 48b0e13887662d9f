// Few queries of an index of codes: one query's answer has the bytes of the same query's in a batch of 100, for every
// kind, metric, instruction set and number of threads, with and without what searches keep beside the lists.
#include <kith/index.hpp>

#include "index/index_check.hpp"
#include "kernels/forced_target.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

constexpr int64_t kFewRows = 900;
constexpr int64_t kFewCols = 40;  // two whole vectors of bytes and a part of one
constexpr int64_t kFewBatch = 100;

Index few_index(const std::string& factory, Metric metric, const MatrixView& rows, bool prepare) {
  Index index(factory, {.metric = metric, .prepare = prepare});
  index.train(rows, on_cpu());
  index.add(rows.slice(0, rows.rows() / 3), Ownership::copy, on_cpu());  // not merged with what follows
  index.add(rows.slice(rows.rows() / 3, 20), Ownership::copy, on_cpu());
  index.add(rows.slice(rows.rows() / 3 + 20, rows.rows() - rows.rows() / 3 - 20), Ownership::copy, on_cpu());
  return index;
}

void expect_same_query(const Neighbors& batch, int64_t query, const Neighbors& alone, int64_t at) {
  const auto k = static_cast<size_t>(batch.k());
  ASSERT_EQ(std::memcmp(batch.ids(query), alone.ids(at), k * sizeof(int64_t)), 0) << "query " << query;
  ASSERT_EQ(std::memcmp(batch.distances(query), alone.distances(at), k * sizeof(float)), 0) << "query " << query;
}

class FewQueries : public ::testing::TestWithParam<std::tuple<const char*, Metric>> {};

TEST_P(FewQueries, OneQueryIsThatOfABatch) {
  const auto [factory, metric] = GetParam();
  const Matrix<float> rows = make_floats(Shape::gaussian, kFewRows, kFewCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, kFewBatch, kFewCols, 2);
  const Index plain = few_index(factory, metric, rows.view(), false);
  const Index index = few_index(factory, metric, rows.view(), true);
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    for (const int64_t k : {1, 10, 100}) {
      const SearchParams params = taken_by(index, {.k = k, .probes = 3});
      const Neighbors batch = plain.search(queries.view(), params, on_cpu());
      expect_same(batch, index.search(queries.view(), params, on_cpu()));
      for (int64_t i = 0; i < kFewBatch; i += 9) {
        const Neighbors alone = index.search(queries.view().slice(i, 1), params, on_cpu(kNoLimit, 1 + i % 2));
        expect_same_query(batch, i, alone, 0);
      }
      const Neighbors some = index.search(queries.view().slice(20, 7), params, on_cpu());
      for (int64_t i = 0; i < 7; ++i) expect_same_query(batch, 20 + i, some, i);
    }
  }
}

TEST_P(FewQueries, AFilterAndARangeOfOneQueryAreThoseOfABatch) {
  const auto [factory, metric] = GetParam();
  const Matrix<float> rows = make_floats(Shape::gaussian, kFewRows, kFewCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, kFewBatch, kFewCols, 2);
  const Index plain = few_index(factory, metric, rows.view(), false);
  const Index index = few_index(factory, metric, rows.view(), true);
  std::vector<uint8_t> mask(kFewRows);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 != 1;
  const RowFilter filter = RowFilter::mask(mask.data(), kFewRows);
  const SearchParams params = taken_by(index, {.k = 10, .filter = filter, .probes = 3});
  const Neighbors batch = plain.search(queries.view(), params, on_cpu());
  const float radius = batch.distances(0)[9];
  const RangeSearchParams range = range_taken_by(index, {.radius = radius, .filter = filter, .probes = 3});
  const RangeNeighbors near = plain.range_search(queries.view(), range, on_cpu());
  for (int64_t i = 0; i < kFewBatch; i += 7) {
    expect_same_query(batch, i, index.search(queries.view().slice(i, 1), params, on_cpu()), 0);
    const RangeNeighbors one = index.range_search(queries.view().slice(i, 1), range, on_cpu());
    const int64_t first = near.offsets()[i];
    const int64_t count = near.offsets()[i + 1] - first;
    ASSERT_EQ(one.size(), count);
    const auto some = static_cast<size_t>(count);
    EXPECT_EQ(std::memcmp(one.ids(), near.ids() + first, some * sizeof(int64_t)), 0);
    EXPECT_EQ(std::memcmp(one.distances(), near.distances() + first, some * sizeof(float)), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, FewQueries,
    ::testing::Combine(::testing::Values("IVF12,Flat", "IVF12,SQ8", "IVF12,SQ6", "IVF12,SQ4", "IVF12,SQfp16",
                                         "IVF12,PQ10", "IVF12,PQ20x4", "Flat", "SQ8", "SQ6", "SQ4", "SQfp16", "PQ10",
                                         "PQ20x4", "RQ2", "RQ3x8_Nqint8", "IVF12,LSQ2", "IVF12,RQ2",
                                         "IVF12,RQ3x8_Nfloat", "IVF12,SQ8,RFlat", "IVF12,PQ10,Refine(SQ8)",
                                         "PCA20,IVF12,SQ8", "OPQ10,IVF12,PQ10"),
                       ::testing::Values(Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine)));

// Rows that are long enough for codes of 4 and 6 bits that are not unpacked, with a last vector that is not whole, and
// codes that are some bytes longer than a vector.
class FewQueriesOfLongerRows : public ::testing::TestWithParam<const char*> {};

TEST_P(FewQueriesOfLongerRows, OneQueryIsThatOfABatch) {
  constexpr int64_t kCols = 100;
  const Matrix<float> rows = make_floats(Shape::gaussian, 1500, kCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, kFewBatch, kCols, 2);
  const Index plain = few_index(GetParam(), Metric::l2, rows.view(), false);
  const Index index = few_index(GetParam(), Metric::l2, rows.view(), true);
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    const SearchParams params = taken_by(index, {.k = 10, .probes = 3});
    const Neighbors batch = plain.search(queries.view(), params, on_cpu());
    for (int64_t i = 0; i < kFewBatch; i += 7) {
      expect_same_query(batch, i, index.search(queries.view().slice(i, 1), params, on_cpu(kNoLimit, 1)), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FewQueriesOfLongerRows,
                         ::testing::Values("SQ6", "SQ4", "IVF9,SQ6", "IVF9,SQ4", "PQ25", "IVF9,PQ25", "IVF9,PQ10",
                                           "PQ10", "RQ9x8_Nqint8", "IVF9,RQ9x8_Nfloat"));

// Bounds hold whatever the data are: with all lists one query is knn() over what the index holds.
TEST(FewQueriesOfHardRows, AreExact) {
  for (const Shape shape : reference::kAllShapes) {
    for (const int64_t cols : {3, 16, 33}) {
      const Matrix<float> rows = make_floats(shape, 300, cols, 1);
      const Matrix<float> queries = make_floats(shape, 4, cols, 2);
      for (const char* factory : {"IVF5,Flat", "IVF5,SQ8", "IVF5,SQ6", "SQ8", "SQfp16", "SQ4"}) {
        const bool beyond_f16 = shape == Shape::huge || shape == Shape::mixed_norms;
        if (beyond_f16 && std::string(factory) == "SQfp16") continue;
        for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
          SCOPED_TRACE(testing::Message() << shape << ' ' << cols << ' ' << factory << ' ' << name_of(metric));
          const Index index = few_index(factory, metric, rows.view(), true);
          std::vector<int64_t> ids(300);
          std::iota(ids.begin(), ids.end(), 0);
          for (int64_t i = 0; i < 4; ++i) expect_exact(index, queries.view().slice(i, 1), ids);
        }
      }
    }
  }
}

// Rows that fill no register or just do, with a part of a vector of columns, each there twice; more neighbours than
// rows; as many queries as are compared one by one, put together, or decoded for. Two threads find what one finds.
TEST(FewQueriesOfOddShapes, AnyNumberTogetherFindTheSame) {
  constexpr int64_t kQueries = 37;
  for (const int64_t cols : {1, 2, 3, 7, 15, 16, 17, 36, 64, 130}) {
    for (const int64_t half : {8, 16, 33}) {
      Matrix<float> rows = make_floats(Shape::gaussian, 2 * half, cols, 1);
      std::copy_n(rows.row(0), half * cols, rows.row(half));
      const Matrix<float> queries = make_floats(Shape::gaussian, kQueries, cols, 2);
      for (const char* factory : {"Flat", "SQ8", "SQ6", "SQ4", "SQfp16", "IVF2,Flat", "IVF2,SQ8", "IVF2,SQ6"}) {
        const auto made = [&](bool prepare) {
          Index index(factory, {.metric = Metric::l2, .prepare = prepare});
          index.train(rows.view(), on_cpu());
          index.add(rows.view(), Ownership::copy, on_cpu());
          return index;
        };
        const Index plain = made(false);
        const Index index = made(true);
        for (const std::string& target : targets_for_next_case()) {
          SCOPED_TRACE(testing::Message() << target << ' ' << factory << ' ' << 2 * half << " x " << cols);
          const ForcedTarget forced(target);
          for (const int64_t k : {int64_t{1}, 2 * half + 5}) {
            const SearchParams params = taken_by(index, {.k = k, .probes = 2});
            const Neighbors batch = plain.search(queries.view(), params, on_cpu());
            for (const int64_t size : {1, 3, 4, 5, 33}) {
              const Resources resources = on_cpu(kNoLimit, 1 + size % 2);
              const Neighbors some = index.search(queries.view().slice(2, size), params, resources);
              for (int64_t i = 0; i < size; ++i) expect_same_query(batch, 2 + i, some, i);
            }
          }
        }
      }
    }
  }
}

// Tables are filled for some of these queries at a time.
TEST(FewQueriesOfSums, ManyTogetherFindTheSame) {
  constexpr int64_t kQueries = 300;
  const Matrix<float> rows = make_floats(Shape::gaussian, kFewRows, kFewCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, kQueries, kFewCols, 2);
  for (const char* factory : {"RQ2", "RQ2_Nqint8", "IVF12,RQ2"}) {
    const Index plain = few_index(factory, Metric::l2, rows.view(), false);
    const Index index = few_index(factory, Metric::l2, rows.view(), true);
    const SearchParams params = taken_by(index, {.k = 10, .probes = 3});
    index.search(queries.view().slice(0, 1), params, on_cpu());  // keeps what few queries are compared with
    for (const std::string& target : targets_for_next_case()) {
      SCOPED_TRACE(testing::Message() << target << ' ' << factory);
      const ForcedTarget forced(target);
      const Neighbors batch = plain.search(queries.view(), params, on_cpu());
      expect_same(batch, index.search(queries.view(), params, on_cpu()));
      for (int64_t i = 0; i < kQueries; i += 70) {
        expect_same_query(batch, i, plain.search(queries.view().slice(i, 1), params, on_cpu()), 0);
      }
    }
  }
}

TEST(FewQueriesMemory, WhatIsKeptIsCountedAndCanBeLeftOut) {
  const Matrix<float> rows = make_floats(Shape::gaussian, kFewRows, kFewCols, 1);
  const auto grows_by = [&](const char* factory, bool prepare, int64_t limit) {
    const Index index = few_index(factory, Metric::l2, rows.view(), prepare);
    const int64_t before = index.bytes().host;
    index.search(rows.view().slice(0, 1), {.k = 3}, on_cpu(limit));
    return index.bytes().host - before;
  };
  EXPECT_EQ(grows_by("IVF12,Flat", true, kNoLimit), kFewRows * (48 + 12));
  EXPECT_EQ(grows_by("IVF12,SQ8", true, kNoLimit), kFewRows * 4);
  EXPECT_EQ(grows_by("IVF12,Flat", false, kNoLimit), 0);
}

}  // namespace
}  // namespace kith
