#include "graph/pairs/pair_scan.hpp"

#include "exact/exact_check.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

class Found final : public PairHits {
 public:
  void on_pair(const PairHit& hit) override { hits[{hit.query, hit.row}] = hit; }
  std::map<std::pair<int64_t, int64_t>, PairHit> hits;
};

float key_of(const reference::Matrix<float>& x, Metric metric, int64_t a, int64_t b) {
  return reference::canonical(metric, x.row(a), x.row(b), x.cols);
}

// Every pair within a limit is handed out, with bounds around its key and for the side that wants it.
void expect_all_found(const MatrixView& view, const reference::Matrix<float>& x, Metric metric, uint32_t row_count = 66) {
  const PairRows all(view, key_kind(metric), on_cpu());
  const auto scan = make_pair_scan(all, 40, row_count, on_cpu());
  std::vector<uint32_t> queries;
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < 37; ++i) queries.push_back((i * 5 + 1) % static_cast<uint32_t>(view.rows()));
  for (uint32_t i = 0; i < row_count; ++i) rows.push_back((i * 3 + 2) % static_cast<uint32_t>(view.rows()));
  std::vector<float> keys;
  for (const uint32_t row : rows) keys.push_back(key_of(x, metric, queries[0], row));
  std::sort(keys.begin(), keys.end());
  const float near = keys[keys.size() / 6];
  scan->set_queries(queries.data(), 37);
  scan->set_rows(rows.data(), row_count);
  const auto query_limit = [&](size_t q) { return q % 3 == 0 ? kNoKey : q % 3 == 1 ? near : keys[3]; };
  const auto row_limit = [&](size_t r) { return r % 4 == 0 ? near : r % 4 == 1 ? keys[1] : kNoKey; };
  for (size_t q = 0; q < queries.size(); ++q) scan->limit_query(static_cast<int64_t>(q), query_limit(q));
  for (size_t r = 0; r < rows.size(); ++r) scan->limit_row(static_cast<int64_t>(r), row_limit(r));
  Found found;
  scan->run(found);
  for (size_t q = 0; q < queries.size(); ++q) {
    for (size_t r = 0; r < rows.size(); ++r) {
      const float key = key_of(x, metric, queries[q], rows[r]);
      const auto at = found.hits.find({static_cast<int64_t>(q), static_cast<int64_t>(r)});
      const bool there = at != found.hits.end();
      ASSERT_TRUE(!(key <= query_limit(q)) || (there && at->second.for_query)) << q << " " << r;
      ASSERT_TRUE(!(key <= row_limit(r)) || (there && at->second.for_row)) << q << " " << r;
      if (!there) continue;
      ASSERT_FALSE(at->second.for_query && std::isnan(query_limit(q)));
      ASSERT_FALSE(at->second.for_row && std::isnan(row_limit(r)));
      ASSERT_LE(at->second.lower, key);
      ASSERT_GE(at->second.upper, key);
      ASSERT_TRUE(!scan->exact() || at->second.lower == key);
    }
  }
}

TEST(PairScan, HandsOutWhateverMayMatterToEitherSide) {
  for (const Shape shape : reference::kAllShapes) {
    for (const int64_t cols : {1, 7, 16, 40}) {
      const auto x = reference::without_sign(make_floats(shape, 90, cols, 3));
      for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::cosine, Metric::inner_product, Metric::l1,
                                  Metric::linf, Metric::chi_square}) {
        SCOPED_TRACE(::testing::Message() << shape << " " << cols << " " << name_of(metric));
        expect_all_found(x.view(), x, metric);
      }
    }
  }
}

TEST(PairScan, ComparesBytesAndBitsExactly) {
  for (const int64_t cols : {1, 5, 64, 129}) {
    const auto bytes = reference::make_bytes(90, cols, 3);
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::hamming}) {
      SCOPED_TRACE(::testing::Message() << cols << " " << name_of(metric));
      expect_all_found(bytes.view(), reference::widened(bytes), metric);
    }
    const auto signed_bytes = reference::stored_as<int8_t>(make_floats(Shape::gaussian, 90, cols, 1));
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
      expect_all_found(signed_bytes.view(), reference::widened(signed_bytes), metric);
    }
  }
}

TEST(PairScan, ComparesManyRowsUnderOneLimit) {
  for (const uint32_t rows : {511, 700}) {
    const auto bytes = reference::make_bytes(900, 33, 3);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::hamming}) {
      expect_all_found(bytes.view(), reference::widened(bytes), metric, rows);
    }
    const auto signed_bytes = reference::stored_as<int8_t>(make_floats(Shape::gaussian, 900, 33, 1));
    expect_all_found(signed_bytes.view(), reference::widened(signed_bytes), Metric::sqeuclidean, rows);
  }
}

// Where 1 / (x + y) has no estimate, and where it is as large as one gets.
TEST(PairScan, ComparesTinyAndLargeHistograms) {
  for (const float unit : {0x1p-149f, 0x1p-130f, 0x1p-126f, 0x1p-124f, 0x1p-120f, 1.0f, 0x1p30f, 0x1p62f}) {
    auto x = reference::without_sign(make_floats(Shape::gaussian, 90, 24, 3));
    for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = i % 5 == 0 ? 0 : x.values[i] * unit;
    SCOPED_TRACE(unit);
    expect_all_found(x.view(), x, Metric::chi_square);
  }
}

TEST(PairScan, RanOutOfLimitsFindsEverything) {
  const auto x = make_floats(Shape::gaussian, 30, 20, 3);
  const PairRows all(x.view(), KeyKind::l2, on_cpu());
  const auto scan = make_pair_scan(all, 30, 30, on_cpu());
  std::vector<uint32_t> rows(30);
  for (uint32_t i = 0; i < 30; ++i) rows[i] = i;
  scan->set_queries(rows.data(), 30);
  scan->set_rows(rows.data(), 30);
  for (int64_t i = 0; i < 30; ++i) scan->limit_query(i, std::numeric_limits<float>::infinity());
  Found found;
  scan->run(found);
  EXPECT_EQ(found.hits.size(), 900u);
}

}  // namespace
}  // namespace kith
