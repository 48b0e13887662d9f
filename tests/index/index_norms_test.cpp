// Indexes of codes with norms: a search goes by |q|^2 - 2 q x + norm of what the codes and norms say, and files,
// removal, filters, ranges and limits change nothing of it.
#include "index/index_access.hpp"
#include "index/index_check.hpp"
#include "index/norms_check.hpp"
#include "io/temporary_directory.hpp"
#include "core/ordered_key.hpp"
#include "ivf/scan/list_product.hpp"
#include "reference/data.hpp"
#include "reference/sanitized.hpp"

#include <kith/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

constexpr int64_t kNormsRows = 500;
constexpr int64_t kNormsCols = 12;

class NormsOfCodes : public ::testing::TestWithParam<std::tuple<const char*, const char*, Metric>> {
 protected:
  Index make(Shape shape = Shape::gaussian) const {
    const auto training = make_floats(shape, kNormsRows, kNormsCols, 1);
    Index index(std::string(std::get<0>(GetParam())) + std::get<1>(GetParam()), {.metric = std::get<2>(GetParam())});
    index.train(training.view(), on_cpu());
    index.add(training.view(), Ownership::copy, on_cpu());
    return index;
  }
};

TEST_P(NormsOfCodes, ASearchGoesByTheDefinition) {
  int64_t number = static_cast<int64_t>(std::string(std::get<1>(GetParam())).size()) +
                   (std::get<2>(GetParam()) == Metric::l2 ? 0 : 2);  // so that shapes take turns
  for (const Shape shape : {Shape::gaussian, Shape::far_mean, Shape::near_duplicates, Shape::all_equal}) {
    if (reference::left_to_plain(number++, 4)) continue;
    const Index index = make(shape);
    const auto queries = make_floats(shape, 9, kNormsCols, 2);
    for (const int64_t count : {1, 9}) {  // few queries and many may be searched in other ways
      const Neighbors found =
          index.search(queries.view().slice(0, count), taken_by(index, {.k = 20, .probes = kAll}), on_cpu());
      for (int64_t q = 0; q < count; ++q) {
        const std::vector<uint64_t> expected = plain_search(index, queries.view(), q);
        for (int64_t i = 0; i < 20; ++i) {
          const uint64_t entry = expected[static_cast<size_t>(i)];
          ASSERT_EQ(found.ids(q)[i], row_of(entry)) << index.factory() << ", query " << q << ", place " << i;
          ASSERT_EQ(found.distances(q)[i], key_of_ordered(ordered_of(entry))) << index.factory();
        }
      }
    }
  }
}

// Norms are those of the vectors that are held: f32 exactly, levels nearly.
TEST_P(NormsOfCodes, NormsAreOfTheHeldVectors) {
  if (*std::get<1>(GetParam()) == 0) return;  // those of signs are estimates (rabitq_test.cpp)
  const Index index = make();
  const std::vector<float> vectors = reconstructed(index, numbers(index.size()));
  const std::vector<float> norms = held_norms(index);
  const auto [least, most] = std::minmax_element(norms.begin(), norms.end());
  for (int64_t row = 0; row < index.size(); ++row) {
    const auto exact = static_cast<float>(canonical_squared_norm(vectors.data() + row * kNormsCols, kNormsCols));
    const float apart = std::abs(norms[static_cast<size_t>(row)] - exact);
    const bool whole = std::string(std::get<1>(GetParam())) == "_Nfloat";
    EXPECT_LE(apart, whole ? 0.0f : (*most - *least) / 100) << row;
  }
}

TEST_P(NormsOfCodes, FiltersRangesRemovalAndFiles) {
  Index index = make();
  const auto queries = make_floats(Shape::gaussian, 7, kNormsCols, 2);
  const Neighbors all = index.search(queries.view(), taken_by(index, {.k = kNormsRows, .probes = kAll}), on_cpu());
  std::vector<uint8_t> mask(kNormsRows);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 0;
  const Neighbors kept = index.search(
      queries.view(), taken_by(index, {.k = 6, .filter = RowFilter::mask(mask.data(), kNormsRows), .probes = kAll}),
      on_cpu());
  for (int64_t q = 0; q < 7; ++q) {
    int64_t at = 0;
    for (int64_t i = 0; i < kNormsRows && at < 6; ++i) {
      if (all.ids(q)[i] % 3 != 0) continue;
      EXPECT_EQ(kept.ids(q)[at], all.ids(q)[i]);
      EXPECT_EQ(kept.distances(q)[at++], all.distances(q)[i]);
    }
    const float radius = all.distances(q)[40];
    const RangeNeighbors range = index.range_search(
        queries.view().slice(q, 1), range_taken_by(index, {.radius = radius, .probes = kAll}), on_cpu());
    ASSERT_GE(range.size(), 41);
    EXPECT_EQ(range.ids()[40], all.ids(q)[40]);
    EXPECT_EQ(range.distances()[range.size() - 1], radius);
  }
  const std::vector<int64_t> gone = {3, 77, 499};
  index.remove(view(gone), on_cpu());
  const kith::testing::TemporaryDirectory directory;
  const std::string path = directory.path("saved.kith");
  index.save(path, on_cpu());
  Index loaded = Index::load(path, on_cpu());
  EXPECT_EQ(loaded.factory(), index.factory());
  expect_same(loaded.search(queries.view(), taken_by(loaded, {.k = 30, .probes = 3}), on_cpu()),
              index.search(queries.view(), taken_by(index, {.k = 30, .probes = 3}), on_cpu()));
  const auto more = make_floats(Shape::gaussian, 9, kNormsCols, 5);
  index.add(more.view(), Ownership::copy, on_cpu());
  loaded.add(more.view(), Ownership::copy, on_cpu());
  expect_same(loaded.search(queries.view(), taken_by(loaded, {.k = 400, .probes = kAll}), on_cpu()),
              index.search(queries.view(), taken_by(index, {.k = 400, .probes = kAll}), on_cpu(kNoLimit, 1)));
}

INSTANTIATE_TEST_SUITE_P(IndexNorms, NormsOfCodes,
                         ::testing::Combine(::testing::Values("LSQ3x5", "IVF6,RQ2x8", "RQ2x8", "IVF6,LSQ2x3"),
                                            ::testing::Values("_Ncqint8", "_Nqint8", "_Nfloat"),
                                            ::testing::Values(Metric::l2, Metric::sqeuclidean)));
INSTANTIATE_TEST_SUITE_P(IndexRaBitQ, NormsOfCodes,
                         ::testing::Combine(::testing::Values("RaBitQ", "IVF6,RaBitQ"), ::testing::Values(""),
                                            ::testing::Values(Metric::l2, Metric::sqeuclidean)));

// Norms of 4 bytes are added to what is looked up, whatever they are: in several pieces of a list, from 0 to 1e8 times
// another.
TEST(IndexNorms, LookupsAddNormsThatAreFarApart) {
  constexpr int64_t kMany = 3000;
  auto base = make_floats(Shape::gaussian, kMany, kNormsCols, 1);
  for (int64_t i = 0; i < kMany; ++i) {
    const float scale = i % 5 == 0 ? 0.0f : i % 3 == 0 ? 1e4f : 1.0f;
    for (int64_t c = 0; c < kNormsCols; ++c) base.row(i)[c] *= scale;
  }
  const auto queries = make_floats(Shape::gaussian, 5, kNormsCols, 2);
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean}) {
    if (reference::left_to_plain(metric == Metric::l2 ? 1 : 0, 2)) continue;
    Index index("RQ3x8_Nfloat", {.metric = metric});
    index.train(base.view(), on_cpu());
    index.add(base.view(), Ownership::copy, on_cpu());
    EXPECT_TRUE(has_sum_tables(IndexAccess::parts(index, on_cpu()).lists->codec.format, key_kind(metric)));
    for (const int64_t k : {1, 40, 2000}) {
      const Neighbors found = index.search(queries.view(), {.k = k}, on_cpu());
      for (int64_t q = 0; q < 5; ++q) {
        const std::vector<uint64_t> expected = plain_search(index, queries.view(), q);
        for (int64_t i = 0; i < k; ++i) {
          const uint64_t entry = expected[static_cast<size_t>(i)];
          ASSERT_EQ(found.ids(q)[i], row_of(entry)) << "query " << q << ", place " << i << " of " << k;
          ASSERT_EQ(found.distances(q)[i], key_of_ordered(ordered_of(entry)));
        }
      }
    }
  }
}

TEST(IndexNorms, ProductsAndCosineGoByTheDecodedVectors) {
  const auto base = make_floats(Shape::gaussian, kNormsRows, kNormsCols, 1);
  const auto queries = make_floats(Shape::gaussian, 50, kNormsCols, 2);
  for (const Metric metric : {Metric::inner_product, Metric::cosine}) {
    for (const std::string code : {"IVF6,RQ2x4", "IVF6,RQ2x8"}) {
      Index plain(code, {.metric = metric});
      plain.train(base.view(), on_cpu());
      plain.add(base.view(), Ownership::copy, on_cpu());
      for (const char* const norm : {"_Ncqint8", "_Nqint8", "_Nfloat", "_Nnone"}) {
        if (metric == Metric::cosine && std::string(norm) == "_Nnone") continue;
        Index index(code + norm, {.metric = metric});
        index.train(base.view(), on_cpu());
        index.add(base.view(), Ownership::copy, on_cpu());
        for (const int64_t count : {1, 9, 50}) {  // lookups and products
          const MatrixView some = queries.view().slice(0, count);
          expect_same(index.search(some, {.k = 20, .probes = 3}, on_cpu()),
                      plain.search(some, {.k = 20, .probes = 3}, on_cpu()));
        }
      }
      const std::vector<float> vectors = reconstructed(plain, numbers(kNormsRows));
      expect_same(plain.search(queries.view().slice(0, 3), {.k = 20, .probes = kAll}, on_cpu()),
                  knn(queries.view().slice(0, 3), MatrixView(vectors.data(), kNormsRows, kNormsCols), {.k = 20, .metric = metric},
                      on_cpu()));
    }
  }
}

TEST(IndexNorms, CodesAreLongerByTheNorm) {
  const auto base = make_floats(Shape::gaussian, kNormsRows, kNormsCols, 1);
  for (const auto& [factory, bytes] :
       {std::pair("LSQ2x4", 1), std::pair("LSQ2x4_Nqint8", 2), std::pair("LSQ2x4_Nfloat", 5)}) {
    Index index(factory, {.metric = Metric::sqeuclidean});
    index.train(base.view(), on_cpu());
    EXPECT_EQ(index.info().code_bytes, bytes) << factory;
  }
}

std::string refused(const std::string& factory, Metric metric) {
  try {
    const Index index(factory, {.metric = metric});
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(IndexNorms, WhatIsRefused) {
  using ::testing::HasSubstr;
  EXPECT_THAT(refused("LSQ8x8_Nnone", Metric::l2), HasSubstr("inner_product alone"));
  EXPECT_THAT(refused("LSQ8x8_Nnone", Metric::cosine), HasSubstr("inner_product alone"));
  EXPECT_EQ(refused("LSQ8x8_Nnone", Metric::inner_product), "");
  EXPECT_THAT(refused("LSQ8x8_Nqint4", Metric::l2), HasSubstr("_Nqint8"));
  EXPECT_THAT(refused("LSQ8x8_Nqint8x", Metric::l2), HasSubstr("_Ncqint8"));
  EXPECT_THAT(refused("PQ8_Nqint8", Metric::l2), HasSubstr("unknown part"));
  EXPECT_THAT(refused("IVF4,PQ4,Refine(LSQ8x8_Nfloat)", Metric::l2), HasSubstr("leave out '_Nfloat'"));
}

TEST(IndexNorms, IndexesWithOtherNormsAreNotMerged) {
  const auto base = make_floats(Shape::gaussian, kNormsRows, kNormsCols, 1);
  Index a("LSQ2x4_Nqint8", {.metric = Metric::l2});
  Index b("LSQ2x4_Ncqint8", {.metric = Metric::l2});
  for (Index* const index : {&a, &b}) {
    index->train(base.view(), on_cpu());
    index->add(base.view(), Ownership::copy, on_cpu());
  }
  EXPECT_THROW(a.merge(b, {}, on_cpu()), InvalidArgument);
}

}  // namespace
}  // namespace kith
