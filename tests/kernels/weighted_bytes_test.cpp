// Sums of weights and bytes against their definition, on every instruction set: what passes, and with which value.
#include "kernels/lists/weighted_bytes.hpp"

#include "core/random.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/forced_target.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kith {
namespace {

using reference::Matrix;

TEST(WeightedBytes, ValuesAreTheSumsAndLimitsHold) {
  const CounterRng rng(5, 0);
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    for (const int64_t cols : {16, 17, 31, 32, 48, 64, 100, 128, 192, 256, 1536}) {
      for (const int64_t count : {1, 3, 4, 16, 23, 50, 75}) {
        SCOPED_TRACE(testing::Message() << target << ' ' << cols << ' ' << count);
        std::vector<uint8_t> bytes(static_cast<size_t>(count * cols));
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(rng.word(i));
        std::vector<float> values(static_cast<size_t>(cols));
        std::vector<float> placed(static_cast<size_t>(weight_bytes(cols) / 2), 0.0f);
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<float>(rng.word(7 * i + 1) % 20001) / 10000.0f - 1.0f;
          placed[static_cast<size_t>(weight_place(static_cast<int64_t>(i), cols))] = values[i];
        }
        std::vector<float> terms(static_cast<size_t>(count));
        std::vector<float> scales(static_cast<size_t>(count));
        std::vector<float> spreads(static_cast<size_t>(count));
        for (size_t i = 0; i < terms.size(); ++i) {
          terms[i] = static_cast<float>(i) * 3;
          scales[i] = 1 + static_cast<float>(i) / 8;
          spreads[i] = static_cast<float>(i % 5);
        }
        std::vector<uint8_t> memory(static_cast<size_t>(weight_bytes(cols)));
        const ByteWeights weights = round_weights(placed.data(), cols, memory.data());
        ASSERT_GT(weights.step, 0);
        EXPECT_LE(weights.moved_by, weights.step * std::sqrt(static_cast<double>(cols)) * 0.51);
        const ByteRows rows{bytes.data(), cols,          count,
                            cols,         100,           static_cast<float>(255 * std::sqrt(cols)),
                            terms.data(), scales.data(), spreads.data()};
        std::vector<float> expected;
        for (int64_t i = 0; i < count; ++i) {
          double sum = 0;
          for (int64_t c = 0; c < cols; ++c) {
            const double weight = std::nearbyint(values[static_cast<size_t>(c)] * (1 / weights.step));
            sum += weight * (static_cast<int>(bytes[static_cast<size_t>(i * cols + c)]) - 100);
          }
          const auto at = static_cast<size_t>(i);
          expected.push_back(
              static_cast<float>(terms[at] + scales[at] * (0.5 - static_cast<double>(weights.step) * sum)));
        }
        const float half = expected[static_cast<size_t>(count / 2)] + 0.25f;
        int64_t wanted = 0;
        for (size_t i = 0; i < expected.size(); ++i) wanted += expected[i] - 2 * spreads[i] <= half;
        for (const int64_t together : {1, 2, 3, 4, 7, 9, 35}) {  // of which the last has a limit
          const auto size = static_cast<size_t>(together);
          std::vector<std::vector<float>> found(size, std::vector<float>(static_cast<size_t>(count) + 16));
          std::vector<std::vector<uint32_t>> numbers(size, std::vector<uint32_t>(static_cast<size_t>(count) + 16));
          std::vector<ByteRowsQuery> queries;
          for (int64_t q = 0; q < together; ++q) {
            const bool limited = q + 1 == together && together > 1;
            queries.push_back({weights, 0.5f, -weights.step, limited ? half : std::numeric_limits<float>::infinity(),
                               2.0f, found[static_cast<size_t>(q)].data(), numbers[static_cast<size_t>(q)].data()});
          }
          scan_weighted_bytes(rows, 7, queries.data(), together);
          ASSERT_EQ(queries[0].found, count);
          for (int64_t i = 0; i < count; ++i) {
            const auto at = static_cast<size_t>(i);
            EXPECT_EQ(numbers[0][at], static_cast<uint32_t>(7 + i));
            EXPECT_NEAR(found[0][at], expected[at], 1e-3 * (1 + std::abs(expected[at])));
          }
          if (together > 1) {
            EXPECT_EQ(queries.back().found, wanted);
          }
        }
      }
    }
  }
}

// Rows of 4 and 6 bits a value, taken as they lie, have the values of the same rows unpacked.
TEST(WeightedBytes, PackedRowsAreThoseOfTheirBytes) {
  const CounterRng rng(6, 0);
  for (const std::string& target : cpu_targets()) {
    const ForcedTarget forced(target);
    for (const int bits : {4, 6}) {
      for (const int64_t cols : {16, 20, 32, 34, 36, 48, 64, 68, 100, 128, 192, 512, 516}) {
        if (!takes_packed_rows(bits, cols)) continue;
        SCOPED_TRACE(testing::Message() << target << ' ' << bits << " bits, " << cols << " columns");
        constexpr int64_t kCount = 53;  // two registers of them, one, and a part of one, or of four
        Matrix<uint8_t> codes(kCount, cols * bits / 8);
        Matrix<uint8_t> bytes(kCount, cols);
        for (int64_t i = 0; i < kCount; ++i) {
          for (int64_t b = 0; b < cols * bits / 8; ++b) {
            codes.row(i)[b] = static_cast<uint8_t>(rng.word(static_cast<uint64_t>(i * 1000 + b)));
          }
          unpack_sub_codes(codes.row(i), cols, bits, bytes.row(i));
        }
        std::vector<float> placed(static_cast<size_t>(weight_bytes(cols) / 2), 0.0f);
        std::vector<float> packed(static_cast<size_t>(packed_weight_columns(bits, cols)), 0.0f);
        for (int64_t c = 0; c < cols; ++c) {
          const float value = static_cast<float>(rng.word(static_cast<uint64_t>(9 * c)) % 20001) / 10000.0f - 1.0f;
          placed[static_cast<size_t>(weight_place(c, cols))] = value;
          packed[static_cast<size_t>(packed_weight_place(c, bits, cols))] = value;
        }
        std::vector<uint8_t> plain_memory(2 * placed.size());
        std::vector<uint8_t> packed_memory(2 * packed.size());
        const auto packed_cols = static_cast<int64_t>(packed.size());
        const ByteWeights plain = round_weights(placed.data(), cols, plain_memory.data());
        const ByteWeights own = round_weights(packed.data(), packed_cols, packed_memory.data());
        const float longest = 255 * std::sqrt(static_cast<float>(packed_cols));
        const ByteRows plain_rows{bytes.row(0), cols,    kCount,  cols,   1 << (bits - 1),
                                  longest,      nullptr, nullptr, nullptr};
        const ByteRows own_rows{codes.row(0), cols * bits / 8, kCount,  packed_cols, 1 << (bits - 1),
                                longest,      nullptr,         nullptr, nullptr,     bits};
        for (const int64_t together : {1, 2, 4, 10}) {
          const auto scanned = [&](const ByteRows& rows, const ByteWeights& weights) {
            std::vector<float> values(static_cast<size_t>(together) * (kCount + 16));
            std::vector<uint32_t> numbers(values.size());
            std::vector<ByteRowsQuery> queries;
            for (int64_t q = 0; q < together; ++q) {
              queries.push_back({weights, 0.5f, weights.step, std::numeric_limits<float>::infinity(), 0.0f,
                                 values.data() + q * (kCount + 16), numbers.data() + q * (kCount + 16)});
            }
            scan_weighted_bytes(rows, 0, queries.data(), together);
            for (const ByteRowsQuery& query : queries) EXPECT_EQ(query.found, kCount);
            return values;
          };
          const std::vector<float> expected = scanned(plain_rows, plain);
          const std::vector<float> found = scanned(own_rows, own);
          for (int64_t q = 0; q < together; ++q) {
            for (int64_t i = 0; i < kCount; ++i) {
              const auto at = static_cast<size_t>(q * (kCount + 16) + i);
              EXPECT_NEAR(found[at], expected[at], 1e-2 * (1 + std::abs(expected[at]))) << "row " << i;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kith
