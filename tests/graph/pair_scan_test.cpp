#include "graph/lists/pairs/pair_scan.hpp"

#include "core/random.hpp"
#include "exact/exact_check.hpp"
#include "kernels/forced_target.hpp"
#include "kernels/panels/byte_product.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
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

// `ordered`: as the copy that cells are compared by. `not_rounded`: as NN-Descent from random rows does.
enum class Rows { as_they_are, ordered, not_rounded };

FloatPairs floats_of(Rows kind) {
  return kind == Rows::not_rounded ? FloatPairs::as_they_are : FloatPairs::may_be_rounded;
}

// The numbers of rows, in the order they have.
std::vector<uint32_t> all_rows(const MatrixView& view) {
  std::vector<uint32_t> rows(static_cast<size_t>(view.rows()));
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

// Every pair within a limit is handed out, with bounds around its key and for the side that wants it.
void expect_all_found(const MatrixView& view, const reference::Matrix<float>& x, Metric metric, uint32_t row_count = 66,
                      Rows kind = Rows::as_they_are) {
  const PairRows given(view, key_kind(metric), on_cpu());
  const std::vector<uint32_t> order = all_rows(view);
  const PairRows copy(given, order.data(), on_cpu());
  const PairRows& all = kind == Rows::ordered ? copy : given;
  const auto scan = make_pair_scan(all, 40, row_count, on_cpu(), floats_of(kind));
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

class Firsts final : public PairFirsts {
 public:
  void on_first(int64_t query, const uint32_t* rows, const float* keys, int64_t count) override {
    ASSERT_TRUE(found.emplace(query, std::vector<uint32_t>(rows, rows + count)).second);
    if (keys != nullptr) told[query].assign(keys, keys + count);
  }
  std::map<int64_t, std::vector<uint32_t>> found;
  std::map<int64_t, std::vector<float>> told;
};

// Every query gets its first by (key, row), all that tie with the last wanted, and the keys where they are known.
void expect_firsts(const MatrixView& view, const reference::Matrix<float>& x, Metric metric, int64_t wanted,
                   uint32_t row_count) {
  const PairRows given(view, key_kind(metric), on_cpu());
  const std::vector<uint32_t> order = all_rows(view);
  const PairRows all(given, order.data(), on_cpu());
  const auto scan = make_pair_scan(all, 40, row_count, on_cpu());
  std::vector<uint32_t> queries;
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < 37; ++i) queries.push_back((i * 5 + 1) % static_cast<uint32_t>(view.rows()));
  for (uint32_t i = 0; i < row_count; ++i) rows.push_back((i * 3 + 2) % static_cast<uint32_t>(view.rows()));
  scan->set_queries(queries.data(), 37);
  scan->set_rows(rows.data(), row_count);
  Firsts firsts;
  scan->run_first(wanted, firsts);
  ASSERT_EQ(firsts.found.size(), queries.size());
  for (size_t q = 0; q < queries.size(); ++q) {
    const std::vector<uint32_t>& found = firsts.found[static_cast<int64_t>(q)];
    std::vector<float> keys;
    for (const uint32_t row : rows) keys.push_back(key_of(x, metric, queries[q], row));
    std::vector<float> sorted = keys;
    std::sort(sorted.begin(), sorted.end());
    const float last = sorted[static_cast<size_t>(std::min<int64_t>(wanted, row_count) - 1)];
    for (uint32_t r = 0; r < row_count; ++r) {
      ASSERT_TRUE(keys[r] > last || std::binary_search(found.begin(), found.end(), r)) << q << " " << r;
    }
    ASSERT_EQ(scan->exact(), firsts.told.count(static_cast<int64_t>(q)) > 0);
    for (size_t i = 0; i < found.size() && scan->exact(); ++i) {
      ASSERT_EQ(firsts.told[static_cast<int64_t>(q)][i], keys[found[i]]);
    }
  }
}

// What features of chi_square lose when they are rounded is more than what such rows differ by.
TEST(PairScan, HistogramsThatDifferByTheirLastBits) {
  const CounterRng rng(9, 1);
  for (const float unit : {1.0f, 1e-6f, 3e7f}) {
    auto x = reference::without_sign(make_floats(Shape::gaussian, 90, 40, 3));
    for (int64_t i = 0; i < x.rows; ++i) {
      for (int64_t c = 0; c < x.cols; ++c) {
        const float first = unit * static_cast<float>(100 + 7 * c);
        const auto ulps = static_cast<float>(rng.below(static_cast<uint64_t>(i * x.cols + c), 3));
        x.row(i)[c] = first + ulps * (std::nextafter(first, INFINITY) - first);
      }
    }
    for (const std::string& target : targets_for_next_case()) {
      const ForcedTarget forced(target);
      expect_all_found(x.view(), x, Metric::chi_square, 66, Rows::ordered);
      expect_firsts(x.view(), x, Metric::chi_square, 7, 66);
    }
  }
}

TEST(PairScan, HandsOutWhateverMayMatterToEitherSide) {
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    for (const Shape shape : reference::kAllShapes) {
      for (const int64_t cols : {1, 7, 16, 40, 70}) {
        const auto x = reference::without_sign(make_floats(shape, 90, cols, 3));
        for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::cosine, Metric::inner_product, Metric::l1,
                                    Metric::linf, Metric::chi_square}) {
          SCOPED_TRACE(::testing::Message() << target << " " << shape << " " << cols << " " << name_of(metric));
          expect_all_found(x.view(), x, metric);
          expect_all_found(x.view(), x, metric, 66, Rows::ordered);
          expect_all_found(x.view(), x, metric, 66, Rows::not_rounded);
        }
      }
    }
  }
}

TEST(PairScan, ComparesBytesAndBitsExactly) {
  for (const int64_t cols : {1, 5, 64, 65, 128, 129, 200}) {
    const auto bytes = reference::make_bytes(90, cols, 3);
    const auto signed_bytes = reference::stored_as<int8_t>(make_floats(Shape::gaussian, 90, cols, 1));
    for (const std::string& target : targets_for_next_case()) {
      const ForcedTarget forced(target);
      for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::hamming}) {
        SCOPED_TRACE(::testing::Message() << target << " " << cols << " " << name_of(metric));
        expect_all_found(bytes.view(), reference::widened(bytes), metric);
      }
      for (const Metric metric : {Metric::l2, Metric::inner_product}) {
        expect_all_found(signed_bytes.view(), reference::widened(signed_bytes), metric);
      }
    }
  }
}

// On x86 without extensions too, up to so many columns.
TEST(PairScan, MultipliesBytesWhereverThatIsFaster) {
  const auto bytes = [](int64_t cols) { return has_byte_product(cols, {}) ? PanelFormat::u8 : PanelFormat::f32; };
  for (const int64_t cols : {int64_t{1}, kMostWordColumns, kMostWordColumns + 1}) {
    EXPECT_EQ(choose_pair_format(KeyKind::l2, DType::u8, cols, {}), bytes(cols)) << cols;
  }
  EXPECT_EQ(choose_pair_format(KeyKind::l2, DType::u8, kMostWordColumns + 1, {}), PanelFormat::f32);
  EXPECT_EQ(choose_pair_format(KeyKind::cosine, DType::u8, 128, {}), PanelFormat::f32);
  EXPECT_EQ(choose_pair_format(KeyKind::l1, DType::u8, 128, {}), PanelFormat::f32);
  EXPECT_EQ(choose_pair_format(KeyKind::l2, DType::f32, 128, {}), PanelFormat::f32);
}

TEST(PairScan, ComparesManyRowsUnderTheirLimits) {
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    for (const uint32_t rows : {511, 700}) {
      const auto bytes = reference::make_bytes(900, 33, 3);
      for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::hamming}) {
        SCOPED_TRACE(::testing::Message() << target << " " << rows << " " << name_of(metric));
        expect_all_found(bytes.view(), reference::widened(bytes), metric, rows);
      }
      const auto signed_bytes = reference::stored_as<int8_t>(make_floats(Shape::gaussian, 900, 33, 1));
      expect_all_found(signed_bytes.view(), reference::widened(signed_bytes), Metric::sqeuclidean, rows);
    }
  }
}

// Where 1 / (x + y) has no estimate, and where it is as large as one gets.
TEST(PairScan, ComparesTinyAndLargeHistograms) {
  for (const float unit : {0x1p-149f, 0x1p-130f, 0x1p-126f, 0x1p-124f, 0x1p-120f, 1.0f, 0x1p30f, 0x1p62f}) {
    auto x = reference::without_sign(make_floats(Shape::gaussian, 90, 24, 3));
    for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = i % 5 == 0 ? 0 : x.values[i] * unit;
    SCOPED_TRACE(unit);
    expect_all_found(x.view(), x, Metric::chi_square);
    expect_all_found(x.view(), x, Metric::chi_square, 66, Rows::ordered);
    expect_firsts(x.view(), x, Metric::chi_square, 7, 66);
  }
}

// A query finds its nearest rows, all of them where several are as near, and so does a row that has a limit; where keys
// are known, nobody else is found.
void expect_nearest(const MatrixView& view, const reference::Matrix<float>& x, Metric metric, bool same,
                    Rows kind = Rows::as_they_are) {
  const int64_t set = view.rows() / 2;
  constexpr float kAny = std::numeric_limits<float>::infinity();
  const PairRows all(view, key_kind(metric), on_cpu());
  const auto scan = make_pair_scan(all, set, set, on_cpu(), floats_of(kind));
  std::vector<uint32_t> queries(static_cast<size_t>(set));
  std::vector<uint32_t> rows(static_cast<size_t>(set));
  for (uint32_t i = 0; i < set; ++i) {
    queries[i] = 2 * i;
    rows[i] = same ? 2 * i : 2 * i + 1;
  }
  const auto key = [&](int64_t q, int64_t r) {
    return same && q == r ? kAny : key_of(x, metric, queries[static_cast<size_t>(q)], rows[static_cast<size_t>(r)]);
  };
  scan->set_queries(queries.data(), set);
  scan->set_rows(rows.data(), set);
  for (int64_t i = 0; i < set; ++i) {
    scan->limit_query(i, kAny);
    if (!same) scan->limit_row(i, kAny);
  }
  Found found;
  scan->run_nearest(found, same);
  std::vector<float> of_query(static_cast<size_t>(set), kAny);
  std::vector<float> of_row(static_cast<size_t>(set), kAny);
  for (int64_t q = 0; q < set; ++q) {
    for (int64_t r = 0; r < set; ++r) {
      of_query[static_cast<size_t>(q)] = std::min(of_query[static_cast<size_t>(q)], key(q, r));
      of_row[static_cast<size_t>(r)] = std::min(of_row[static_cast<size_t>(r)], key(q, r));
    }
  }
  for (int64_t q = 0; q < set; ++q) {
    for (int64_t r = 0; r < set; ++r) {
      const auto hit = found.hits.find({q, r});
      const bool there = hit != found.hits.end();
      const bool for_query = key(q, r) < kAny && key(q, r) <= of_query[static_cast<size_t>(q)];
      const bool for_row = !same && key(q, r) <= of_row[static_cast<size_t>(r)];
      ASSERT_TRUE(!for_query || (there && hit->second.for_query)) << q << " " << r;
      ASSERT_TRUE(!for_row || (there && hit->second.for_row)) << q << " " << r;
      if (!scan->exact() || !there || set > kMostNearest) continue;  // of larger sets all that limits leave
      ASSERT_EQ(hit->second.for_query, for_query) << q << " " << r;
      ASSERT_EQ(hit->second.for_row, for_row) << q << " " << r;
      ASSERT_EQ(hit->second.lower, key(q, r));
    }
  }
}

TEST(PairScan, HandsOutTheNearestOfEither) {
  for (const bool same : {true, false}) {
    for (const Shape shape : reference::kAllShapes) {
      const auto x = reference::without_sign(make_floats(shape, 90, 24, 3));
      for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::cosine, Metric::inner_product, Metric::l1,
                                  Metric::chi_square}) {
        SCOPED_TRACE(::testing::Message() << shape << " " << name_of(metric));
        expect_nearest(x.view(), x, metric, same);
        expect_nearest(x.view(), x, metric, same, Rows::not_rounded);
      }
    }
    for (const std::string& target : targets_for_next_case()) {
      const ForcedTarget forced(target);
      for (const int64_t rows : {2, 90, 600}) {  // of the last, sets of more than 256
        const auto bytes = reference::make_bytes(rows, 24, 3);
        for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::hamming}) {
          SCOPED_TRACE(::testing::Message() << target << " bytes " << rows << " " << name_of(metric));
          expect_nearest(bytes.view(), reference::widened(bytes), metric, same);
        }
      }
    }
  }
}

// Where bounds tell distances apart little more than the nearest is left.
TEST(PairScan, HandsOutLittleMoreThanTheNearest) {
  constexpr int64_t kSet = 90;
  const auto x = make_floats(Shape::gaussian, kSet, 24, 3);
  const PairRows all(x.view(), KeyKind::l2, on_cpu());
  const auto scan = make_pair_scan(all, kSet, kSet, on_cpu());
  const std::vector<uint32_t> rows = all_rows(x.view());
  scan->set_queries(rows.data(), kSet);
  scan->set_rows(rows.data(), kSet);
  for (int64_t i = 0; i < kSet; ++i) scan->limit_query(i, std::numeric_limits<float>::infinity());
  Found found;
  scan->run_nearest(found, true);
  EXPECT_LT(found.hits.size(), static_cast<size_t>(kSet * kSet / 4));
}

TEST(PairScan, PicksTheFirstOfEveryQuery) {
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    for (const Shape shape : reference::kAllShapes) {
      for (const int64_t cols : {1, 16, 70}) {
        const auto x = reference::without_sign(make_floats(shape, 90, cols, 3));
        for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product, Metric::chi_square}) {
          SCOPED_TRACE(::testing::Message() << target << " " << shape << " " << cols << " " << name_of(metric));
          expect_firsts(x.view(), x, metric, 9, 66);
        }
      }
    }
    const auto bytes = reference::make_bytes(900, 33, 3);
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::hamming}) {
      for (const uint32_t rows : {5, 700}) {
        SCOPED_TRACE(::testing::Message() << target << " bytes " << name_of(metric) << " " << rows);
        expect_firsts(bytes.view(), reference::widened(bytes), metric, 16, rows);
      }
    }
  }
}

// Rows in another order are found at their places.
TEST(PairScan, ComparesRowsInAnotherOrder) {
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    for (const int64_t cols : {7, 16, 70}) {
      const auto x = make_floats(Shape::gaussian, 60, cols, 3);
      const auto bytes = reference::make_bytes(60, cols, 3);
      for (const MatrixView& view : {x.view(), bytes.view()}) {
        const PairRows rows(view, KeyKind::l2, on_cpu());
        std::vector<uint32_t> order(60);
        for (uint32_t i = 0; i < 60; ++i) order[i] = i * 7 % 60;
        const PairRows ordered(rows, order.data(), on_cpu());
        std::map<std::pair<int64_t, int64_t>, PairHit> hits[2];
        for (const bool places : {false, true}) {
          const auto scan = make_pair_scan(places ? ordered : rows, 60, 60, on_cpu());
          std::vector<uint32_t> numbers(60);
          for (uint32_t i = 0; i < 60; ++i) numbers[i] = places ? i : order[i];
          scan->set_queries(numbers.data(), 60);
          scan->set_rows(numbers.data(), 60);
          for (int64_t i = 0; i < 60; ++i) scan->limit_query(i, std::numeric_limits<float>::infinity());
          Found found;
          scan->run(found);
          hits[places ? 1 : 0] = found.hits;
        }
        ASSERT_EQ(hits[0].size(), 3600u);
        for (const auto& [pair, hit] : hits[0]) {
          ASSERT_EQ(hit.lower, hits[1][pair].lower);
          ASSERT_EQ(hit.upper, hits[1][pair].upper);
        }
      }
    }
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

// |a - b|, of a single column.
struct FirstColumnApart {
  float init() const { return 0; }
  float step(float sum, float a, float b) const { return sum + (a < b ? b - a : a - b); }
  float finish(float sum) const { return sum; }
};

TEST(PairScan, RowsInAnotherOrderKeepAMetricOfTheUsers) {
  const auto x = make_floats(Shape::gaussian, 30, 1, 4);
  const FirstColumnApart metric;
  const custom::PanelMetric panels{&metric, &custom::panel_distances<FirstColumnApart>};
  const PairRows given(x.view(), panels);
  std::vector<uint32_t> order = all_rows(x.view());
  std::reverse(order.begin(), order.end());
  const PairRows turned(given, order.data(), on_cpu());
  ASSERT_EQ(turned.custom(), given.custom());
  const auto scan = make_pair_scan(turned, 2, 3, on_cpu());
  const std::vector<uint32_t> queries{0, 7};
  const std::vector<uint32_t> rows{1, 2, 29};
  scan->set_queries(queries.data(), 2);
  scan->set_rows(rows.data(), 3);
  Firsts firsts;
  scan->run_first(3, firsts);
  for (size_t q = 0; q < queries.size(); ++q) {
    for (size_t r = 0; r < rows.size(); ++r) {
      const float apart = std::abs(x.row(29 - queries[q])[0] - x.row(29 - rows[r])[0]);
      EXPECT_EQ(firsts.told[static_cast<int64_t>(q)][r], apart);
    }
  }
}

}  // namespace
}  // namespace kith
