#include "core/half.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/forced_target.hpp"
#include "kernels/lists/code_screen.hpp"
#include "kernels/lists/code_tables.hpp"
#include "kernels/lists/list_tiles.hpp"
#include "kernels/panels/instruction_family.hpp"
#include "kernels/select/smallest_values.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

namespace kith {
namespace {

using reference::gaussian;
using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

TEST(ListKernels, RankValueHasTheRankAndFewMore) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const int64_t count : {1, 5, 16, 100, 1000}) {
      const auto values = make_floats(Shape::gaussian, 1, count, 1);
      for (const int64_t rank : {int64_t{1}, (count + 1) / 2, count}) {
        const float value = rank_value(values.row(0), count, rank);
        const int64_t below = std::count_if(values.row(0), values.row(0) + count, [&](float v) { return v <= value; });
        EXPECT_GE(below, rank);
        EXPECT_LE(below, rank + rank / 16 + 1) << count << " values, rank " << rank;
      }
    }
    std::vector<float> equal(50, 3.0f);
    EXPECT_EQ(rank_value(equal.data(), 50, 7), 3.0f);
    equal[20] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(rank_value(equal.data(), 50, 7), std::numeric_limits<float>::infinity());
  }
}

TEST(ListKernels, KeepsValuesUpToALimitInOrder) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const int64_t count : {0, 1, 31, 200}) {
      const auto given = make_floats(Shape::gaussian, 1, std::max<int64_t>(count, 1), 2);
      std::vector<float> values(given.row(0), given.row(0) + count);
      if (count > 20) values[20] = std::numeric_limits<float>::quiet_NaN();
      std::vector<uint32_t> expected;
      for (int64_t i = 0; i < count; ++i) {
        if (!(values[static_cast<size_t>(i)] > 0.1f)) expected.push_back(static_cast<uint32_t>(i));
      }
      std::vector<uint32_t> rows(static_cast<size_t>(count) + 64);
      std::iota(rows.begin(), rows.end(), 0u);
      values.resize(values.size() + 64);
      const int64_t kept = keep_up_to(0.1f, values.data(), rows.data(), count);
      rows.resize(static_cast<size_t>(kept));
      EXPECT_EQ(rows, expected);
    }
  }
}

// Product codes of some shape with random codewords.
struct ProductCodes {
  CodeFormat format;
  reference::Matrix<float> words;
  reference::Matrix<uint8_t> codes;

  ProductCodes(int64_t parts, int64_t width, int bits, int64_t count)
      : format{CodeKind::product, parts * width, DType::f32, bits, parts},
        words(make_floats(Shape::gaussian, parts * (int64_t{1} << bits), width, 3)),
        codes(make_bytes(count, format.bytes(), 4)) {}
  CodecView view() const { return {format, nullptr, nullptr, words.values.data()}; }
  const float* word(int64_t row, int64_t part) const {
    return words.row(part * format.codewords() + sub_code(codes.row(row), part, format.bits));
  }
};

TEST(ListKernels, DecodesProductCodesOfEveryWidth) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const int64_t width : {1, 2, 3, 4, 8, 16, 17}) {
      for (const int bits : {4, 5, 8}) {
        const ProductCodes given(6, width, bits, 5);
        const auto centre = make_floats(Shape::gaussian, 1, given.format.cols, 5);
        std::vector<float> out(static_cast<size_t>(5 * given.format.cols));
        decode_rows_cpu(given.view(), given.codes.row(0), 5, centre.row(0), out.data());
        for (int64_t i = 0; i < 5 * given.format.cols; ++i) {
          const int64_t c = i % given.format.cols;
          const float residual = given.word(i / given.format.cols, c / width)[c % width];
          ASSERT_EQ(out[static_cast<size_t>(i)], centre.row(0)[c] + residual);
        }
      }
    }
  }
}

TEST(ListKernels, TablesAddUpAndTheirBytesAreLowerBounds) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const int bits : {4, 6, 8}) {
      for (const int64_t parts : {1, 2, 4, 7, 8, 16, 40}) {
        constexpr int64_t kCount = 150;
        const ProductCodes given(parts, 3, bits, kCount);
        const int64_t words = given.format.codewords();
        const auto query = make_floats(Shape::gaussian, 1, given.format.cols, 6);
        std::vector<float> columns(given.words.values.size());
        for (int64_t p = 0; p < parts; ++p) {
          for (int64_t w = 0; w < words; ++w) {
            for (int64_t c = 0; c < 3; ++c) {
              columns[static_cast<size_t>((p * 3 + c) * words + w)] = given.words.row(p * words + w)[c];
            }
          }
        }
        std::vector<float> tables(static_cast<size_t>(parts * words));
        // One query alone, and seven that are filled four and three together: each has the tables of its own.
        const float* const asked = query.row(0);
        float* const filled = tables.data();
        fill_code_tables(given.format, {columns.data(), nullptr}, &asked, 1, -1.0f, &filled);
        const auto others = make_floats(Shape::gaussian, 7, given.format.cols, 12);
        std::vector<std::vector<float>> of_others(7, std::vector<float>(tables.size()));
        std::vector<const float*> all_asked;
        std::vector<float*> all_filled;
        for (int64_t i = 0; i < 7; ++i) {
          all_asked.push_back(i == 5 ? query.row(0) : others.row(i));
          all_filled.push_back(of_others[static_cast<size_t>(i)].data());
        }
        fill_code_tables(given.format, {columns.data(), nullptr}, all_asked.data(), 7, -1.0f, all_filled.data());
        for (size_t i = 0; i < 7; ++i) {
          std::vector<float> alone(tables.size());
          float* const to = alone.data();
          fill_code_tables(given.format, {columns.data(), nullptr}, &all_asked[i], 1, -1.0f, &to);
          EXPECT_EQ(of_others[i], alone) << "query " << i;
        }
        EXPECT_EQ(of_others[5], tables);
        std::vector<float> values(kCount);
        for (int64_t i = 0; i < kCount; ++i) {
          values[static_cast<size_t>(i)] = sum_code_tables(given.format, tables.data(), given.codes.row(i));
        }
        std::vector<uint8_t> bytes(static_cast<size_t>(screen_table_bytes(given.format)), 0);
        const ByteTables rounded = round_code_tables(given.format, tables.data(), bytes.data());
        ASSERT_GT(rounded.step, 0);
        std::vector<uint32_t> within;
        const uint16_t most = static_cast<uint16_t>(parts * 100);
        for (int64_t i = 0; i < kCount; ++i) {
          double product = 0;
          double exact = 0;
          uint32_t steps = 0;
          for (int64_t p = 0; p < parts; ++p) {
            const auto entry = static_cast<size_t>(p * words + sub_code(given.codes.row(i), p, bits));
            exact += static_cast<double>(tables[entry]);
            steps += bytes[entry];
            for (int64_t c = 0; c < 3; ++c) {
              product -= static_cast<double>(query.row(0)[p * 3 + c]) * static_cast<double>(given.word(i, p)[c]);
            }
          }
          EXPECT_NEAR(values[static_cast<size_t>(i)], product, 1e-4);
          EXPECT_LE(rounded.least + steps * rounded.step, exact);
          EXPECT_GE(rounded.least + (steps + static_cast<double>(parts) * 1.01) * rounded.step, exact);
          if (steps <= most) within.push_back(static_cast<uint32_t>(i));
        }
        if (!has_code_screen(given.format, cpu_extensions())) continue;
        constexpr int kQueries = 7;  // as many as four together, two, and one
        std::vector<std::vector<uint32_t>> found(kQueries, std::vector<uint32_t>(kCount + 64));
        ScreenQuery queries[kQueries];
        for (int q = 0; q < kQueries; ++q) {
          const auto other_limit = static_cast<uint16_t>(q * 8192 % 65536);
          queries[q] = {bytes.data(), q % 2 == 0 ? most : other_limit, found[static_cast<size_t>(q)].data(), 0};
        }
        screen_codes(given.format, given.codes.row(0), kCount, queries, kQueries);
        for (int q = 0; q < kQueries; q += 2) {
          std::vector<uint32_t>& rows = found[static_cast<size_t>(q)];
          rows.resize(static_cast<size_t>(queries[q].found));
          std::sort(rows.begin(), rows.end());
          // A screen may stop before the last part, and tells more then.
          EXPECT_TRUE(std::includes(rows.begin(), rows.end(), within.begin(), within.end()))
              << parts << " parts, query " << q;
          if (bits == 4) {
            EXPECT_EQ(rows, within) << parts << " parts, query " << q;
          }
        }
        std::vector<uint16_t> sums(kCount + kColumnVectors);
        sum_codes(given.format, given.codes.row(0), kCount, bytes.data(), sums.data());
        std::vector<uint32_t> below;
        for (uint32_t i = 0; i < kCount; ++i) {
          if (sums[i] <= most) below.push_back(i);
        }
        EXPECT_EQ(below, within) << parts << " parts";
      }
    }
  }
}

TEST(ListKernels, LimitsOfTermsAreTheLeastWholeNumbersAbove) {
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    for (const int64_t count : {1, 7, 16, 45, 64}) {
      std::vector<float> terms(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) terms[static_cast<size_t>(i)] = static_cast<float>((i * 37) % 50) - 20.25f;
      terms[0] = NAN;
      std::vector<uint16_t> below(static_cast<size_t>(count) + 1, 7);
      const auto expect = [&](float start, float slope) {
        limits_of_terms(terms.data(), start, slope, count, below.data());
        EXPECT_EQ(below[0], kAboveAllSums) << target;
        for (size_t i = 1; i < terms.size(); ++i) {
          const double most = static_cast<double>(start) + static_cast<double>(slope) * static_cast<double>(terms[i]);
          const double least = std::clamp(std::floor(most) + 1, 0.0, static_cast<double>(kAboveAllSums));
          EXPECT_EQ(below[i], least) << target << ' ' << i << " of " << count;
        }
        EXPECT_EQ(below[terms.size()], 7) << target;  // which nothing was said of
      };
      expect(100, -2);
      expect(-3, 8);
      expect(65500, 16);
      expect(1e30f, 1);
      expect(-1e30f, 1);
    }
  }
}

TEST(ListKernels, TablesThatAreEqualOrNotFiniteHaveNoBytes) {
  const CodeFormat format{CodeKind::product, 2, DType::f32, 4, 2};
  std::vector<float> tables(32, 1.0f);
  std::vector<uint8_t> bytes(32);
  EXPECT_EQ(round_code_tables(format, tables.data(), bytes.data()).step, 0);
  tables[3] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(round_code_tables(format, tables.data(), bytes.data()).step, 0);
  tables[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(round_code_tables(format, tables.data(), bytes.data()).step, 0);
}

#if defined(KITH_X86) || defined(KITH_ARM)

float rounded(float value) {
  const uint32_t bits = bits_of_float(value);
  return float_of_bits((bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u);
}

TEST(ListKernels, TilesMultiplyWhatWasRounded) {
  if (!has_list_tiles(cpu_extensions())) GTEST_SKIP() << "this processor has no tiles";
  for (const int64_t cols : {1, 12, 31, 32, 64, 100, 130}) {
    for (const int64_t count : {1, 16, 17, 32}) {  // queries
      constexpr int64_t kRows = 75;
      const auto queries = make_floats(Shape::gaussian, count, cols, 7);
      const auto rows = make_floats(Shape::gaussian, kRows, cols, 8);
      const auto origin = make_floats(Shape::gaussian, 1, cols, 9);
      const int64_t words = tile_words(cols);
      std::vector<uint32_t> rounded_queries(static_cast<size_t>(kHitQueries * words), 0u);
      std::vector<uint32_t> packed(rounded_queries.size());
      for (int64_t q = 0; q < count; ++q) {
        const RoundedSums sums =
            round_to_tile_words(queries.row(q), origin.row(0), -2.0f, cols, rounded_queries.data() + q * words);
        double squares = 0;
        double errors = 0;
        for (int64_t c = 0; c < cols; ++c) {
          const float moved = queries.row(q)[c] - origin.row(0)[c];
          squares += static_cast<double>(moved) * moved;
          errors += std::pow(static_cast<double>(moved) - static_cast<double>(rounded(moved)), 2.0);
        }
        EXPECT_NEAR(sums.squares, squares, 1e-5 * squares);
        EXPECT_NEAR(sums.errors, errors, 1e-5 * errors);
      }
      for (int64_t first = 0; first < count; first += kTileQueries) {
        place_tile_queries(rounded_queries.data() + first * words, std::min(kTileQueries, count - first), words,
                           packed.data() + first * words);
      }
      constexpr int64_t kPlaces = (kRows + kTileRows - 1) / kTileRows * kTileRows;
      std::vector<uint32_t> panels(static_cast<size_t>(kPlaces * words));
      std::vector<uint32_t> vectors(static_cast<size_t>(kTileRows * words));
      std::vector<float> terms(kPlaces, 0.0f);
      for (int64_t first = 0; first < kRows; first += kTileRows) {
        const int64_t here = std::min(kTileRows, kRows - first);
        for (int64_t i = 0; i < here; ++i) {
          round_to_tile_words(rows.row(first + i), nullptr, 1.0f, cols, vectors.data() + i * words);
          terms[static_cast<size_t>(first + i)] = static_cast<float>(first + i);
        }
        place_tile_rows(vectors.data(), here, words, panels.data() + first * words);
      }
      std::vector<float> limits(kHitQueries, 30.0f);
      limits[0] = std::numeric_limits<float>::infinity();
      ListHits hits;
      hits.stride = ListHits::stride_for(kRows);
      std::vector<float> values(static_cast<size_t>(kHitQueries * hits.stride));
      std::vector<uint32_t> numbers(values.size());
      hits.values = values.data();
      hits.rows = numbers.data();
      scan_list_tiles({packed.data(), count, panels.data(), terms.data(), kRows, cols, limits.data()}, hits);
      for (int64_t q = 0; q < count; ++q) {
        int64_t at = 0;
        for (int64_t i = 0; i < kRows; ++i) {
          double value = static_cast<double>(i);
          for (int64_t c = 0; c < cols; ++c) {
            value -= 2.0 * rounded(queries.row(q)[c] - origin.row(0)[c]) * rounded(rows.row(i)[c]);
          }
          const auto next = static_cast<size_t>(q * hits.stride + at);
          const bool is_next = at < hits.counts[q] && numbers[next] == static_cast<uint32_t>(i);
          if (is_next) {
            ASSERT_NEAR(values[next], value, 1e-3);
            ++at;
          }
          if (value < limits[static_cast<size_t>(q)] - 1e-3) {
            ASSERT_TRUE(is_next) << "query " << q << " row " << i;
          }
          if (value > limits[static_cast<size_t>(q)] + 1e-3) {
            ASSERT_FALSE(is_next) << "query " << q << " row " << i;
          }
        }
        EXPECT_EQ(at, hits.counts[q]);
      }
    }
  }
}

TEST(ListKernels, TilesGatherRoundedCodewords) {
  if (!has_list_tiles(cpu_extensions())) GTEST_SKIP() << "this processor has no tiles";
  for (const int64_t width : {1, 2, 3, 4, 8, 16}) {
    for (const int bits : {4, 7, 8}) {
      constexpr int64_t kCount = 20;
      const ProductCodes given(5, width, bits, kCount);
      std::vector<uint16_t> words;
      std::vector<float> squares;
      for (int64_t w = 0; w < given.words.rows; ++w) {
        float sum = 0;
        for (int64_t c = 0; c < width; ++c) {
          const float value = given.words.row(w)[c];
          words.push_back(static_cast<uint16_t>(bits_of_float(rounded(value)) >> 16));
          sum += value * value;
        }
        squares.push_back(sum);
      }
      const int64_t units = tile_words(given.format.cols);
      std::vector<uint32_t> vectors(static_cast<size_t>(kCount * units));
      std::vector<float> sums(kCount);
      gather_tile_words(given.format, {words.data(), squares.data()}, given.codes.row(0), kCount, units, vectors.data(),
                        sums.data());
      for (int64_t i = 0; i < kCount; ++i) {
        const auto* const values = reinterpret_cast<const uint16_t*>(vectors.data() + i * units);
        double sum = 0;
        for (int64_t c = 0; c < 2 * units; ++c) {
          const float value = c < given.format.cols ? given.word(i, c / width)[c % width] : 0.0f;
          ASSERT_EQ(float_of_bits(static_cast<uint32_t>(values[c]) << 16), rounded(value));
          sum += static_cast<double>(value) * value;
        }
        EXPECT_NEAR(sums[static_cast<size_t>(i)], sum, 1e-5 * (sum + 1));
      }
    }
  }
}

#endif

}  // namespace
}  // namespace kith
