#include "kernels/panels/byte_product.hpp"

#include "core/random.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "rows/stored_row.hpp"
#include "kernels/forced_target.hpp"
#include "kernels/panels/packed_rows.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace kith {
namespace {

using Key = std::pair<int64_t, int64_t>;  // query, row

// The values that passed, checked to be those that the mask names.
class ByteRecorder final : public BytePanelHits {
 public:
  ByteRecorder(int64_t width, int64_t rows, const BytePanelQueries& queries)
      : width_(width), rows_(rows), queries_(queries) {}
  void on_hit(int64_t query, int64_t panel, uint64_t passed, const int32_t* values) override {
    EXPECT_NE(passed, 0u);
    for (int64_t i = 0; i < width_; ++i) {
      EXPECT_EQ((passed >> i & 1) != 0, values[i] <= queries_.limit(query, panel));
      if ((passed >> i & 1) != 0 && panel * width_ + i < rows_) hits[{query, panel * width_ + i}] = values[i];
    }
  }
  std::map<Key, int32_t> hits;

 private:
  int64_t width_;
  int64_t rows_;
  const BytePanelQueries queries_;
};

template <typename T>
reference::Matrix<T> make_values(int64_t rows, int64_t cols, uint64_t seed, bool extreme) {
  reference::Matrix<T> m(rows, cols);
  const CounterRng rng(seed, 5);
  for (size_t i = 0; i < m.values.size(); ++i) {
    const uint64_t value = rng.below(i, 256);
    m.values[i] = extreme ? static_cast<T>(value < 128 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max())
                          : static_cast<T>(value);
  }
  return m;
}

template <typename T>
int64_t exact_sum(KeyKind kind, const T* q, const T* x, int64_t cols) {
  int64_t sum = 0;
  for (int64_t c = 0; c < cols; ++c) {
    const int64_t a = q[c];
    const int64_t b = x[c];
    switch (kind) {
      case KeyKind::inner_product: sum -= a * b; break;
      case KeyKind::hamming: sum += std::popcount(static_cast<uint8_t>(a ^ b)); break;
      default: sum += (a - b) * (a - b);
    }
  }
  return sum;
}

// Packs, scans with limits in the middle of each query's values, and compares every pair.
template <typename T>
void check(KeyKind kind, int64_t query_count, int64_t row_count, int64_t cols, bool extreme) {
  const Resources resources;
  const PanelFormat format = kind == KeyKind::hamming ? PanelFormat::bits
                             : std::is_signed_v<T>    ? PanelFormat::i8
                                                      : PanelFormat::u8;
  const auto queries = make_values<T>(query_count, cols, 1, extreme);
  const auto base = make_values<T>(row_count, cols, 2, extreme);
  ProgressMeter meter("test", 1, resources);
  PackedRows packed(kind, format, std::vector<float>(static_cast<size_t>(cols)), row_count, resources);
  packed.pack(base.view(), {true}, meter, resources);
  std::vector<float> widened(static_cast<size_t>(query_count * cols));
  for (int64_t i = 0; i < query_count; ++i) widen_row(queries.view(), i, widened.data() + i * cols);
  PackedQueries set(kind, format, query_count, cols, resources);
  set.pack(widened.data(), query_count, packed.origin(), meter, resources);

  std::vector<int32_t> limits(static_cast<size_t>(query_count + kMostQueriesPerPanel), kSmallestLimit);
  for (int64_t q = 0; q < query_count; ++q) {
    const int64_t some = exact_sum(kind, queries.row(q), base.row(q % row_count), cols) + q % 3 - 1;
    limits[static_cast<size_t>(q)] = static_cast<int32_t>(some - set.byte_offset(q));
    if (q % 7 == 5) limits[static_cast<size_t>(q)] = kLargestLimit;
    if (q % 7 == 6) limits[static_cast<size_t>(q)] = kSmallestLimit;
  }
  BytePanelQueries panels = set.byte_panels(0, query_count, limits.data());
  const auto expect_what_passes = [&] {
    ByteRecorder recorder(packed.rows_per_panel(), row_count, panels);
    scan_byte_panels(panels, packed.byte_panels(), 0, packed.panel_count(), recorder);
    size_t expected = 0;
    for (int64_t q = 0; q < query_count; ++q) {
      for (int64_t i = 0; i < row_count; ++i) {
        const int64_t sum = exact_sum(kind, queries.row(q), base.row(i), cols);
        const bool passes = sum - set.byte_offset(q) <= panels.limit(q, i / packed.rows_per_panel());
        expected += passes;
        const auto hit = recorder.hits.find({q, i});
        ASSERT_EQ(hit != recorder.hits.end(), passes) << "query " << q << " row " << i;
        if (passes) {
          ASSERT_EQ(int64_t{hit->second} + set.byte_offset(q), sum) << "query " << q << " row " << i;
        }
      }
    }
    EXPECT_EQ(recorder.hits.size(), expected);
  };
  expect_what_passes();
  // Rows with limits: some sum of a panel, everything, or nothing.
  std::vector<int32_t> offsets(limits.size(), kLargestRowLimit);
  for (int64_t q = 0; q < query_count; ++q) offsets[static_cast<size_t>(q)] = set.byte_offset(q);
  std::vector<int32_t> row_limits;
  for (int64_t panel = 0; panel < packed.panel_count(); ++panel) {
    const int64_t row = panel * packed.rows_per_panel();
    const auto some = static_cast<int32_t>(exact_sum(kind, queries.row(panel % query_count), base.row(row), cols));
    row_limits.push_back(panel % 4 == 2 ? kLargestRowLimit : panel % 4 == 3 ? -kLargestRowLimit : some);
  }
  panels.row_limits = row_limits.data();
  panels.offsets = offsets.data();
  expect_what_passes();
}

// Calls use() with every target that multiplies vectors of so many bytes.
template <typename Use>
void for_byte_targets(int64_t cols, const Use& use) {
  bool any = false;
  for (const std::string& target : cpu_targets()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    if (!has_byte_product(cols, cpu_extensions())) continue;
    any = true;
    use();
  }
  if (!any) GTEST_SKIP() << "this machine multiplies no bytes";
}

template <typename T>
void check_every_kind(int64_t queries, int64_t rows, int64_t cols) {
  for (const KeyKind kind : {KeyKind::squared_l2, KeyKind::inner_product}) {
    for (const bool extreme : {false, true}) {
      SCOPED_TRACE(::testing::Message() << queries << " x " << rows << " x " << cols << (extreme ? " extreme" : ""));
      check<T>(kind, queries, rows, cols, extreme);
    }
  }
}

TEST(ByteProduct, IsExactForEveryNumberOfColumns) {
  for_byte_targets(130, [] {
    for (int64_t cols = 1; cols <= 130; ++cols) {
      check_every_kind<uint8_t>(9, 50, cols);
      check_every_kind<int8_t>(9, 50, cols);
    }
  });
}

TEST(ByteProduct, IsExactAroundTheSizesOfPanels) {
  for_byte_targets(20, [] {
    for (const int64_t queries : {1, 5, 6, 7, 8, 9, 31, 32, 33, 70}) {
      for (const int64_t rows : {1, 11, 12, 13, 15, 16, 17, 31, 32, 33, 47, 48, 49, 97, 290}) {
        check_every_kind<uint8_t>(queries, rows, 20);
        check_every_kind<int8_t>(queries, rows, 20);
      }
    }
  });
}

TEST(BitPanels, CountEveryNumberOfColumnsOnEveryTarget) {
  for (const std::string& target : cpu_targets()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const int64_t cols : {1, 2, 15, 16, 17, 30, 31, 32, 33, 62, 63, 300}) {
      SCOPED_TRACE(cols);
      check<uint8_t>(KeyKind::hamming, 9, 150, cols, false);
      check<uint8_t>(KeyKind::hamming, 9, 150, cols, true);
    }
  }
}

TEST(BitPanels, CountAroundTheSizesOfPanelsOnEveryTarget) {
  for (const std::string& target : cpu_targets()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const int64_t queries : {1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 17}) {
      for (const int64_t rows : {1, 4, 15, 16, 31, 33, 47, 48, 49, 63, 64, 65, 129}) {
        SCOPED_TRACE(::testing::Message() << queries << " x " << rows);
        check<uint8_t>(KeyKind::hamming, queries, rows, 20, false);
        check<uint8_t>(KeyKind::hamming, queries, rows, 40, false);
      }
    }
  }
}

TEST(ByteProduct, DoesNotOverflowWithAsManyColumnsAsItTakes) {
  for (const int64_t cols : {kMostWordColumns, kMostByteColumns}) {
    for_byte_targets(cols, [cols] {
      check_every_kind<uint8_t>(3, 40, cols);
      check_every_kind<int8_t>(3, 40, cols);
    });
  }
}

TEST(PanelFormat, BytesOfOneTypeAreMultipliedAsBytes) {
  const CpuExtensions dotprod{true, false, false};
  const auto choose = [&](KeyKind kind, DType queries, DType base, int64_t cols) {
    return choose_panel_format(kind, queries, base, cols, dotprod);
  };
  EXPECT_EQ(choose(KeyKind::l2, DType::u8, DType::u8, 128), PanelFormat::u8);
  EXPECT_EQ(choose(KeyKind::inner_product, DType::i8, DType::i8, 128), PanelFormat::i8);
  EXPECT_EQ(choose(KeyKind::l2, DType::u8, DType::i8, 128), PanelFormat::screened);
  EXPECT_EQ(choose(KeyKind::cosine, DType::u8, DType::u8, 128), PanelFormat::screened);
  EXPECT_EQ(choose(KeyKind::l2, DType::u8, DType::u8, kMostByteColumns + 1), PanelFormat::screened);
  EXPECT_EQ(choose_panel_format(KeyKind::l2, DType::u8, DType::u8, 128, {}), PanelFormat::f32);
  EXPECT_EQ(choose_panel_format(KeyKind::l2, DType::f32, DType::f32, 128, {false, true, true}), PanelFormat::bf16);
}

TEST(PanelFormat, FloatsAreScreenedWhereBytesAreMultiplied) {
  const auto choose = [](KeyKind kind, int64_t cols, const CpuExtensions& cpu) {
    return choose_panel_format(kind, DType::f32, DType::f32, cols, cpu);
  };
  for (const CpuExtensions& cpu : {CpuExtensions{true, false, false}, CpuExtensions{false, true, false}}) {
    for (const KeyKind kind : {KeyKind::l2, KeyKind::squared_l2, KeyKind::inner_product, KeyKind::cosine}) {
      EXPECT_EQ(choose(kind, 128, cpu), PanelFormat::screened);
    }
    EXPECT_EQ(choose(KeyKind::l1, 128, cpu), PanelFormat::f32);
    EXPECT_EQ(choose(KeyKind::l2, 8, cpu), PanelFormat::f32);
    EXPECT_EQ(choose(KeyKind::l2, kMostRoundedColumns, cpu), PanelFormat::screened);
    EXPECT_EQ(choose(KeyKind::l2, kMostRoundedColumns + 1, cpu), PanelFormat::f32);
  }
  EXPECT_EQ(choose(KeyKind::l2, 128, {}), PanelFormat::f32);
  EXPECT_EQ(choose(KeyKind::l2, 128, {false, true, true}), PanelFormat::bf16);
}

TEST(PanelFormat, ColumnsAreFilledUpToEqualSteps) {
  for (const PanelFormat format : {PanelFormat::bf16, PanelFormat::u8}) {
    const int64_t unit = format == PanelFormat::u8 ? 4 : 2;
    for (int64_t cols = 1; cols < 1000; ++cols) {
      const int64_t step = columns_per_step(format, cols);
      const int64_t padded = padded_columns(format, cols);
      ASSERT_EQ(step % unit, 0);
      ASSERT_LE(step, 16 * unit);
      ASSERT_EQ(padded % step, 0);
      ASSERT_GE(padded, cols);
      ASSERT_LT(padded, cols + unit * (cols / (16 * unit) + 1));
    }
  }
}

TEST(ByteKey, LargestSumIsTheLastThatALimitAllows) {
  for (const KeyKind kind : {KeyKind::l2, KeyKind::squared_l2, KeyKind::inner_product, KeyKind::hamming}) {
    for (const int64_t sum : {0ll, 1ll, 2ll, 1000ll, 16777215ll, 16777217ll, 100000003ll, 2147483000ll}) {
      for (const int sign : {1, -1}) {
        if (sign < 0 && kind != KeyKind::inner_product) continue;
        const float at = key_of_sum(kind, static_cast<int32_t>(sign * sum));
        for (const float limit : {at, std::nextafter(at, 1e30f), std::nextafter(at, -1e30f), at + 0.5f, at * 1.01f}) {
          if (kind != KeyKind::inner_product && limit < 0) {
            EXPECT_EQ(largest_sum(kind, limit), -1);
            continue;
          }
          const int64_t largest = largest_sum(kind, limit);
          if (limit < static_cast<float>(kSmallestLimit)) {  // below every sum
            EXPECT_EQ(largest, kSmallestLimit);
            continue;
          }
          if (largest == kLargestLimit) {
            EXPECT_GE(limit, static_cast<float>(kLargestLimit) * (kind == KeyKind::l2 ? 0 : 1));
            continue;
          }
          EXPECT_LE(key_of_sum(kind, static_cast<int32_t>(largest)), limit);
          EXPECT_GT(key_of_sum(kind, static_cast<int32_t>(largest + 1)), limit);
        }
      }
    }
    EXPECT_EQ(largest_sum(kind, std::numeric_limits<float>::infinity()), kLargestLimit);
  }
}

}  // namespace
}  // namespace kith
