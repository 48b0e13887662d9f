// Compressed indexes through Index, whatever their kind: with all lists probed a search is knn() over what
// reconstruct() gives; ids, removal, filters, ranges and files change nothing of that.
#include <kith/error.hpp>
#include <kith/index.hpp>

#include "index/index_access.hpp"
#include "index/index_check.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Matrix;
using reference::Shape;

constexpr int64_t kListsRows = 700;
constexpr int64_t kListsCols = 12;

class KindAndMetric : public ::testing::TestWithParam<std::tuple<const char*, Metric>> {
 protected:
  Index make() const {
    Index index(std::get<0>(GetParam()), {.metric = std::get<1>(GetParam())});
    index.train(base_.view(), on_cpu());
    return index;
  }
  const Matrix<float> base_ = make_floats(Shape::gaussian, kListsRows, kListsCols, 1);
  const Matrix<float> queries_ = make_floats(Shape::gaussian, 17, kListsCols, 2);
};

TEST_P(KindAndMetric, ASearchOfAllListsIsExactThroughAddsAndRemovals) {
  Index index = make();
  EXPECT_TRUE(index.trained());
  EXPECT_EQ(index.size(), 0);
  EXPECT_EQ(index.search(queries_.view(), {.k = 2}, on_cpu()).ids()[0], -1);
  std::vector<int64_t> ids;
  for (int64_t at = 0, step = 1; at < kListsRows; at += step, step = std::min<int64_t>(step * 3, kListsRows - at)) {
    std::vector<int64_t> some;
    for (int64_t i = 0; i < step; ++i) some.push_back(5000 - 3 * (at + i));
    index.add(base_.view().slice(at, step), view(some), Ownership::copy, on_cpu());
    ids.insert(ids.end(), some.begin(), some.end());
  }
  ASSERT_EQ(index.size(), kListsRows);
  expect_exact(index, queries_.view(), ids);
  std::vector<int64_t> gone;
  std::vector<int64_t> left;
  for (size_t i = 0; i < ids.size(); ++i) (i % 5 == 2 ? gone : left).push_back(ids[i]);
  EXPECT_EQ(index.remove(view(gone), on_cpu()), static_cast<int64_t>(gone.size()));
  expect_exact(index, queries_.view(), left);
}

TEST_P(KindAndMetric, AFilterAndARangeAreThoseOfTheWholeSearch) {
  Index index = make();
  index.add(base_.view(), Ownership::copy, on_cpu());
  std::vector<int64_t> ids(kListsRows);
  std::iota(ids.begin(), ids.end(), 0);
  const std::vector<float> vectors = reconstructed(index, ids);
  const MatrixView base(vectors.data(), kListsRows, kListsCols);
  const Metric metric = index.params().metric;
  std::vector<uint8_t> mask(kListsRows);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 0;
  const RowFilter filter = RowFilter::mask(mask.data(), kListsRows);
  expect_same(index.search(queries_.view(), taken_by(index, {.k = 5, .filter = filter, .probes = kAll}), on_cpu()),
              knn(queries_.view(), base, {.k = 5, .metric = metric, .filter = filter}, on_cpu()));
  const float radius =
      index.search(queries_.view(), taken_by(index, {.k = 30, .probes = kAll}), on_cpu()).distances(3)[29];
  const RangeNeighbors near = range_search(queries_.view(), base, {.radius = radius, .metric = metric}, on_cpu());
  const RangeNeighbors found =
      index.range_search(queries_.view(), range_taken_by(index, {.radius = radius, .probes = kAll}), on_cpu());
  ASSERT_EQ(found.size(), near.size());
  ASSERT_GE(near.size(), 30);
  EXPECT_EQ(std::memcmp(found.offsets(), near.offsets(), 18 * sizeof(int64_t)), 0);
  EXPECT_EQ(std::memcmp(found.ids(), near.ids(), static_cast<size_t>(near.size()) * sizeof(int64_t)), 0);
  EXPECT_EQ(std::memcmp(found.distances(), near.distances(), static_cast<size_t>(near.size()) * sizeof(float)), 0);
}

TEST_P(KindAndMetric, ASavedIndexAnswersAsBefore) {
  Index index = make();
  index.add(base_.view().slice(0, 600), Ownership::copy, on_cpu());
  const std::vector<int64_t> gone = {3, 77, 599};
  index.remove(view(gone), on_cpu());
  index.add(base_.view().slice(600, 100), Ownership::copy, on_cpu());
  const kith::testing::TemporaryDirectory directory;
  const std::string path = directory.path("saved.kith");
  index.save(path, on_cpu());
  Index loaded = Index::load(path, on_cpu());
  EXPECT_EQ(loaded.factory(), index.factory());
  EXPECT_EQ(loaded.size(), index.size());
  expect_same(loaded.search(queries_.view(), taken_by(loaded, {.k = 9, .probes = 3}), on_cpu()),
              index.search(queries_.view(), taken_by(index, {.k = 9, .probes = 3}), on_cpu()));
  index.add(base_.view().slice(0, 5), Ownership::copy, on_cpu());
  loaded.add(base_.view().slice(0, 5), Ownership::copy, on_cpu());
  expect_same(loaded.search(queries_.view(), taken_by(loaded, {.k = 700, .probes = kAll}), on_cpu()),
              index.search(queries_.view(), taken_by(index, {.k = 700, .probes = kAll}), on_cpu()));
}

INSTANTIATE_TEST_SUITE_P(IndexLists, KindAndMetric,
                         ::testing::Combine(::testing::Values("IVF16,Flat", "IVF16,SQ8", "IVF7,SQ4", "IVF,SQfp16",
                                                          "IVF16,PQ4x5", "IVF3,PQ6", "SQ6", "PQ3x4", "Flat",
                                                          "LSQ3x5", "IVF8,LSQ2x4", "RQ3x4", "IVF8,RQ2x6"),
                                          ::testing::Values(Metric::l2, Metric::sqeuclidean, Metric::inner_product,
                                                          Metric::cosine)));

TEST(IndexLists, TransformedIndexesSearchTransformedVectors) {
  const auto base = make_floats(Shape::gaussian, kListsRows, kListsCols, 1);
  const auto queries = make_floats(Shape::gaussian, 17, kListsCols, 2);
  for (const char* const factory :
       {"RR,Flat", "PCA12,IVF8,Flat", "OPQ3,IVF8,PQ3", "L2norm,IVF8,SQ8", "Pad16,RR,PQ4x4"}) {
    Index index(factory, {.metric = Metric::sqeuclidean});
    EXPECT_FALSE(index.trained());
    index.train(base.view(), on_cpu());
    index.add(base.view(), Ownership::copy, on_cpu());
    EXPECT_EQ(index.dimension(), kListsCols);
    const Neighbors found = index.search(queries.view(), taken_by(index, {.k = 10, .probes = kAll}), on_cpu());
    int64_t good = 0;  // rotations keep neighbours
    const Neighbors exact = knn(queries.view(), base.view(), {.k = 10, .metric = Metric::sqeuclidean}, on_cpu());
    for (int64_t i = 0; i < 170; ++i) {
      good += std::count(exact.ids(i / 10), exact.ids(i / 10) + 10, found.ids()[i]);
    }
    EXPECT_GT(good, std::string(factory).find("Flat") != std::string::npos ? 168 : 30) << factory;
    const kith::testing::TemporaryDirectory directory;
    const std::string path = directory.path("saved.kith");
    index.save(path, on_cpu());
    expect_same(
        Index::load(path, on_cpu()).search(queries.view(), taken_by(index, {.k = 10, .probes = kAll}), on_cpu()),
        found);
  }
}

TEST(IndexLists, RefiningIsASecondLookAtCandidates) {
  const auto base = make_floats(Shape::gaussian, kListsRows, kListsCols, 1);
  const auto queries = make_floats(Shape::gaussian, 17, kListsCols, 2);
  const Neighbors exact = knn(queries.view(), base.view(), {.k = 5, .metric = Metric::l2}, on_cpu());
  for (const char* const factory : {"IVF8,PQ3x4,RFlat", "PQ3x4,RFlat", "OPQ3,IVF8,PQ3x4,RFlat", "IVF8,LSQ2x4,RFlat"}) {
    Index index(factory);
    index.train(base.view(), on_cpu());
    index.add(base.view().slice(0, 300), Ownership::copy, on_cpu());
    index.add(base.view().slice(300, 400), Ownership::copy, on_cpu());
    // All rows are candidates: exact.
    expect_same(index.search(queries.view(), taken_by(index, {.k = 5, .probes = kAll, .refine = 140}), on_cpu()),
                exact);
    // More candidates never make it worse.
    int64_t before = 0;
    for (const int64_t refine : {1, 4, 16, 64}) {
      const Neighbors found =
          index.search(queries.view(), taken_by(index, {.k = 5, .probes = kAll, .refine = refine}), on_cpu());
      int64_t good = 0;
      for (int64_t i = 0; i < 85; ++i) good += std::count(exact.ids(i / 5), exact.ids(i / 5) + 5, found.ids()[i]);
      EXPECT_GE(good, before) << factory << " " << refine;
      before = good;
    }
    // Everything is within reach of the index behind: a range is exact.
    const RangeNeighbors near =
        index.range_search(queries.view(), range_taken_by(index, {.radius = 1e9f, .probes = kAll}), on_cpu());
    ASSERT_EQ(near.size(), 17 * kListsRows);
    const Neighbors all = knn(queries.view(), base.view(), {.k = kListsRows, .metric = Metric::l2}, on_cpu());
    EXPECT_EQ(std::memcmp(near.ids(), all.ids(), 17 * kListsRows * sizeof(int64_t)), 0);
    EXPECT_EQ(std::memcmp(near.distances(), all.distances(), 17 * kListsRows * sizeof(float)), 0);
    const float radius = exact.distances(0)[2];
    const RangeNeighbors few =
        index.range_search(queries.view(), range_taken_by(index, {.radius = radius, .probes = kAll}), on_cpu());
    for (int64_t i = 0; i < few.size(); ++i) EXPECT_LE(few.distances()[i], radius);
    const std::vector<int64_t> gone = {0, 299, 300};
    index.remove(view(gone), on_cpu());
    const kith::testing::TemporaryDirectory directory;
    const std::string path = directory.path("saved.kith");
    index.save(path, on_cpu());
    expect_same(Index::load(path, on_cpu()).search(queries.view(), {.k = 5, .refine = 3}, on_cpu()),
                index.search(queries.view(), {.k = 5, .refine = 3}, on_cpu()));
  }
}

TEST(IndexLists, WhatIsDoneInTheWrongOrderSaysSo) {
  const auto base = make_floats(Shape::gaussian, kListsRows, kListsCols, 1);
  Index index("IVF16,PQ4");
  const auto text = [&](const auto& call) -> std::string {
    try {
      call();
    } catch (const InvalidState& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_THAT(text([&] { index.add(base.view(), Ownership::copy, on_cpu()); }),
              ::testing::HasSubstr("call train() first"));
  EXPECT_THAT(text([&] { (void)index.search(base.view(), {}, on_cpu()); }), ::testing::HasSubstr("call train() first"));
  EXPECT_THAT(text([&] { index.save("x.kith", on_cpu()); }), ::testing::HasSubstr("call train() first"));
  index.train(base.view(), on_cpu());
  index.train(base.view().slice(0, 600), on_cpu());
  index.add(base.view(), Ownership::copy, on_cpu());
  EXPECT_THAT(text([&] { index.train(base.view(), on_cpu()); }), ::testing::HasSubstr("the index holds 700 vectors"));
  EXPECT_THROW(Index("PQ5").train(base.view(), on_cpu()), InvalidArgument);
  EXPECT_THROW(Index("IVF800,Flat").train(base.view(), on_cpu()), InvalidArgument);
  auto broken = make_floats(Shape::gaussian, kListsRows, kListsCols, 1);
  broken.row(400)[3] = NAN;
  try {
    Index("IVF4,PQ4").train(broken.view(), on_cpu());
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("row 400"));
  }
}

TEST(IndexLists, AnIndexWithoutVectorsIsSavedAndFilledLater) {
  const auto base = make_floats(Shape::gaussian, kListsRows, kListsCols, 1);
  for (const char* const factory : {"IVF4,SQ8", "PQ3x4", "RR,IVF4,Flat", "IVF4,PQ3x4,RFlat", "IVF4,LSQ2x4"}) {
    Index index(factory);
    index.train(base.view(), on_cpu());
    for (const bool emptied : {false, true}) {
      if (emptied) {
        index.add(base.view().slice(0, 3), Ownership::copy, on_cpu());
        const std::vector<int64_t> all = {0, 1, 2};
        EXPECT_EQ(index.remove(view(all), on_cpu()), 3);
      }
      const kith::testing::TemporaryDirectory directory;
      const std::string path = directory.path("saved.kith");
      index.save(path, on_cpu());
      Index loaded = Index::load(path, on_cpu());
      EXPECT_EQ(loaded.size(), 0);
      loaded.add(base.view(), Ownership::copy, on_cpu());
      EXPECT_EQ(
          loaded.search(base.view().slice(5, 1), taken_by(loaded, {.k = 1, .probes = kAll}), on_cpu()).ids()[0] >= 0,
          true)
          << factory;
    }
  }
}

TEST(IndexLists, PartsThatDoNotGoWithTheirFactoryStringAreRefused) {
  const auto base = make_floats(Shape::gaussian, kListsRows, kListsCols, 1);
  Index flat("Flat");
  flat.add(base.view(), Ownership::copy, on_cpu());
  Index lists("IVF4,SQ8");
  lists.train(base.view(), on_cpu());
  for (const Index& index : {flat, lists}) {
    for (const char* const factory : {"IVF4,Flat,RFlat", "PCA4,Flat", "SQ8,RFlat", "Falt", ""}) {
      IndexParts parts = IndexAccess::parts(index, on_cpu());
      parts.factory = factory;
      EXPECT_THROW((void)IndexAccess::from_parts(std::move(parts), on_cpu()), InvalidArgument) << factory;
    }
  }
}

TEST(IndexLists, StoredListsKeepTheDtypeOfTheirTraining) {
  const auto bytes = make_bytes(300, 8, 1);
  const auto floats = make_floats(Shape::gaussian, 20, 8, 2);
  Index index("IVF4,Flat", {.metric = Metric::sqeuclidean});
  index.train(bytes.view(), on_cpu());
  index.add(bytes.view(), Ownership::copy, on_cpu());
  EXPECT_EQ(index.info().code_bytes, 8);
  EXPECT_THROW(index.add(floats.view(), Ownership::copy, on_cpu()), InvalidArgument);
  expect_same(index.search(bytes.view().slice(0, 9), {.k = 4, .probes = kAll}, on_cpu()),
              knn(bytes.view().slice(0, 9), bytes.view(), {.k = 4, .metric = Metric::sqeuclidean}, on_cpu()));
  expect_same(index.search(floats.view(), {.k = 4, .probes = kAll}, on_cpu()),
              knn(floats.view(), bytes.view(), {.k = 4, .metric = Metric::sqeuclidean}, on_cpu()));
}

TEST(IndexLists, InfoSaysWhatThereIs) {
  const auto base = make_floats(Shape::gaussian, kListsRows, kListsCols, 1);
  Index index("IVF16,PQ4");
  EXPECT_FALSE(index.info().trained);
  index.train(base.view(), on_cpu());
  index.add(base.view(), Ownership::copy, on_cpu());
  const IndexInfo info = index.info();
  EXPECT_TRUE(info.trained);
  EXPECT_EQ(info.size, kListsRows);
  EXPECT_EQ(info.lists, 16);
  EXPECT_EQ(info.code_bytes, 4);
  EXPECT_GE(info.imbalance, 1.0);
  EXPECT_GE(info.longest, kListsRows / 16);
  EXPECT_EQ(info.filled, 16);
  int64_t parts = 0;
  for (const auto& [name, bytes] : info.parts) parts += bytes;
  EXPECT_EQ(parts, info.bytes.host);
}

// More queries than have tables of their own at a time, where each list has few of them and where it has many.
TEST(IndexLists, ManyQueriesOfProductCodesFindWhatEachFindsAlone) {
  constexpr int64_t kQueries = 600;
  const auto base = make_floats(Shape::gaussian, 2000, 16, 1);
  const auto queries = make_floats(Shape::gaussian, kQueries, 16, 2);
  for (const char* const kind : {"IVF64,PQ2", "IVF64,PQ8"}) {
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      Index index(kind, {.metric = metric});
      index.train(base.view(), on_cpu());
      index.add(base.view(), Ownership::copy, on_cpu());
      for (const int64_t probes : {1, 3, 30}) {
        SCOPED_TRACE(::testing::Message() << kind << ", " << name_of(metric) << ", " << probes << " probes");
        const Neighbors together = index.search(queries.view(), {.k = 5, .probes = probes}, on_cpu());
        for (int64_t i = 0; i < kQueries; i += 7) {
          const Neighbors alone = index.search(queries.view().slice(i, 1), {.k = 5, .probes = probes}, on_cpu());
          EXPECT_TRUE(std::equal(alone.ids(), alone.ids() + 5, together.ids() + i * 5)) << "query " << i;
          EXPECT_TRUE(std::equal(alone.distances(), alone.distances() + 5, together.distances() + i * 5)) << "query " << i;
        }
      }
    }
  }
}

// All lists have vectors where enough of these differ; where they do not, info() says how many have.
TEST(IndexLists, RowsThatRepeatFillAllListsTheyCan) {
  const auto distinct = make_floats(Shape::gaussian, 40, kListsCols, 1);
  reference::Matrix<float> base(2000, kListsCols);
  for (int64_t i = 0; i < base.rows; ++i) {
    for (int64_t col = 0; col < base.cols; ++col) base.row(i)[col] = distinct.row(i % 40)[col];
  }
  for (const int64_t lists : {20, 40, 64}) {
    Index index("IVF" + std::to_string(lists) + ",Flat");
    index.train(base.view(), on_cpu());
    index.add(base.view(), Ownership::copy, on_cpu());
    EXPECT_EQ(index.info().filled, std::min<int64_t>(lists, 40));
  }
}

}  // namespace
}  // namespace kith
