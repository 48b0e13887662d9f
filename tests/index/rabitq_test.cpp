// RaBitQ: estimates are those of the paper, searches by tables and by products go by their definition, and indexes of
// it live as others do.
#include "index/index_access.hpp"
#include "index/index_check.hpp"
#include "index/norms_check.hpp"
#include "io/temporary_directory.hpp"
#include "ivf/scan/list_product.hpp"
#include "kernels/codes/sign_code.hpp"
#include "reference/data.hpp"

#include <kith/quantizer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using ::testing::HasSubstr;

Index built(const std::string& factory, const MatrixView& rows, Metric metric) {
  Index index(factory, {.metric = metric});
  index.train(rows, on_cpu());
  index.add(rows, Ownership::copy, on_cpu());
  return index;
}

// |q - c|^2 - 2 <q - c, y> + |r|^2 of the vectors that were given, in float64.
double estimate(const float* query, const float* row, const float* centre, int64_t cols) {
  double squares = 0;
  double absolutes = 0;
  double apart = 0;
  double signs = 0;
  for (int64_t c = 0; c < cols; ++c) {
    const double rest = static_cast<double>(row[c] - centre[c]);
    const double moved = static_cast<double>(query[c]) - static_cast<double>(centre[c]);
    squares += rest * rest;
    absolutes += std::abs(rest);
    apart += moved * moved;
    signs += rest > 0 ? moved : -moved;
  }
  return std::max(0.0, apart - 2 * (squares / absolutes) * signs + squares);
}

TEST(RaBitQ, DistancesAreThePapersEstimates) {
  constexpr int64_t kCols = 37;
  const auto rows = make_floats(Shape::gaussian, 600, kCols, 1);
  const auto queries = make_floats(Shape::gaussian, 6, kCols, 2);
  for (const char* const factory : {"RaBitQ", "IVF7,RaBitQ"}) {
    const Index index = built(factory, rows.view(), Metric::sqeuclidean);
    const IndexParts parts = IndexAccess::parts(index, on_cpu());
    const ListParts& lists = *parts.lists;
    EXPECT_EQ(index.info().code_bytes, 5 + 8);
    const Neighbors found = index.search(queries.view(), taken_by(index, {.k = 600, .probes = kAll}), on_cpu());
    for (int64_t list = 0; list < lists.lists; ++list) {
      const float* const centre = lists.centres.rows() > 0
                                      ? reinterpret_cast<const float*>(lists.centres.view().row(list))
                                      : lists.codec.values.data();
      for (int64_t i = lists.offsets[list]; i < lists.offsets[list + 1]; ++i) {
        const int64_t row = lists.rows[i];
        for (int64_t q = 0; q < 6; ++q) {
          const auto* const at = std::find(found.ids(q), found.ids(q) + 600, row);
          ASSERT_LT(at - found.ids(q), 600);
          const double expected = estimate(queries.row(q), rows.row(row), centre, kCols);
          ASSERT_NEAR(found.distances(q)[at - found.ids(q)], expected, 1e-3) << factory << ", row " << row;
        }
      }
    }
  }
}

// Lookups of 4 bits, products where codes are too long for them, and whatever columns fill a byte.
TEST(RaBitQ, ASearchGoesByTheDefinition) {
  for (const int64_t cols : {1, 7, 8, 33, 64, 200, 1100}) {
    auto rows = make_floats(Shape::gaussian, 1500, cols, 1);
    for (int64_t i = 0; i < 1500; i += 9) {
      for (int64_t c = 0; c < cols; ++c) rows.row(i)[c] *= i % 2 == 0 ? 0.0f : 1e3f;
    }
    const auto queries = make_floats(Shape::gaussian, 40, cols, 2);
    const Index index = built(cols % 2 == 0 ? "IVF3,RaBitQ" : "RaBitQ", rows.view(), Metric::sqeuclidean);
    const CodeFormat format = IndexAccess::parts(index, on_cpu()).lists->codec.format;
    EXPECT_TRUE(has_own_tables(format, KeyKind::l2));
    for (const int64_t count : {1, 5, 40}) {
      const Neighbors found =
          index.search(queries.view().slice(0, count), taken_by(index, {.k = 30, .probes = kAll}), on_cpu());
      for (int64_t q = 0; q < count; q += 4) {
        const std::vector<uint64_t> expected = plain_search(index, queries.view(), q);
        for (int64_t i = 0; i < 30; ++i) {
          const uint64_t entry = expected[static_cast<size_t>(i)];
          ASSERT_EQ(found.ids(q)[i], row_of(entry)) << cols << " columns, query " << q << " of " << count;
          ASSERT_EQ(found.distances(q)[i], key_of_ordered(ordered_of(entry)));
        }
      }
    }
  }
}

TEST(RaBitQ, ProductsAndCosineGoByTheDecodedVectors) {
  const auto rows = make_floats(Shape::gaussian, 900, 48, 1);
  const auto queries = make_floats(Shape::gaussian, 30, 48, 2);
  for (const Metric metric : {Metric::inner_product, Metric::cosine}) {
    for (const char* const factory : {"RaBitQ", "IVF5,RaBitQ"}) {
      const Index index = built(factory, rows.view(), metric);
      for (const int64_t count : {1, 30}) expect_exact(index, queries.view().slice(0, count), numbers(900));
    }
  }
}

// The estimate for a randomly rotated vector has no bias, and an error of about |q - c| |r| / root(d).
TEST(RaBitQ, EstimatesAreNearAndWithoutBias) {
  constexpr int64_t kCols = 256;
  const auto rows = make_floats(Shape::gaussian, 800, kCols, 1);
  const auto queries = make_floats(Shape::gaussian, 20, kCols, 2);
  const Index index = built("RR,RaBitQ", rows.view(), Metric::sqeuclidean);
  const Neighbors found = index.search(queries.view(), {.k = 800}, on_cpu());
  double sum = 0;
  double squares = 0;
  for (int64_t q = 0; q < 20; ++q) {
    for (int64_t i = 0; i < 800; ++i) {
      double exact = 0;
      for (int64_t c = 0; c < kCols; ++c) {
        exact += std::pow(double{queries.row(q)[c]} - double{rows.row(found.ids(q)[i])[c]}, 2);
      }
      const double apart = (double{found.distances(q)[i]} - exact) / kCols;
      sum += apart;
      squares += apart * apart;
    }
  }
  EXPECT_LT(std::abs(sum / 16000), 0.01);
  EXPECT_LT(std::sqrt(squares / 16000), 2.5 / std::sqrt(kCols));
}

TEST(RaBitQ, ASecondLookMergesAndMappedFiles) {
  const auto rows = make_floats(Shape::gaussian, 2000, 40, 1);
  const auto queries = make_floats(Shape::gaussian, 9, 40, 2);
  const Neighbors exact = knn(queries.view(), rows.view(), {.k = 5, .metric = Metric::l2}, on_cpu());
  Index index("RR,IVF8,RaBitQ,RFlat", {.metric = Metric::l2});
  index.train(rows.view(), on_cpu());
  const kith::testing::TemporaryDirectory directory;
  index.save(directory.path("trained.kith"), on_cpu());
  Index other = Index::load(directory.path("trained.kith"), on_cpu());
  index.add(rows.view().slice(0, 1200), Ownership::copy, on_cpu());
  other.add(rows.view().slice(1200, 800), Ownership::copy, on_cpu());
  index.merge(other, {.shift_ids = true}, on_cpu());
  expect_same(index.search(queries.view(), {.k = 5, .probes = kAll, .refine = 400}, on_cpu()), exact);
  index.save(directory.path("all.kith"), on_cpu());
  const Index mapped = Index::load(directory.path("all.kith"), {.mmap = true}, on_cpu());
  expect_same(mapped.search(queries.view(), {.k = 5, .probes = 3}, on_cpu()),
              index.search(queries.view(), {.k = 5, .probes = 3}, on_cpu()));
  EXPECT_EQ(mapped.factory(), "RR,IVF8,RaBitQ,RFlat");
}

TEST(RaBitQ, WhatIsRefused) {
  EXPECT_THAT(message_of([] { Index index("IVF4,PQ4,Refine(RaBitQ)"); }), HasSubstr("take SQ8 or RFlat"));
  EXPECT_THAT(message_of([] { Index index("RaBitQ4"); }), HasSubstr("one bit a column"));
  EXPECT_THAT(message_of([] { Index index("Graph32,RaBitQ"); }), HasSubstr("SQ8 or SQfp16"));
  EXPECT_THAT(message_of([] { (void)make_quantizer("RaBitQ"); }), HasSubstr("is not a quantizer"));
}

}  // namespace
}  // namespace kith
