// Integer keys of a query with rows of bytes: the sums, for every instruction set, number of rows and columns.
#include "kernels/distance/byte_keys_cpu.hpp"

#include "core/random.hpp"
#include "kernels/distance/packed_byte_rows.hpp"
#include "kernels/forced_target.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kith {
namespace {

struct ByteKeyCase {
  int64_t cols;
  int64_t rows;
  int32_t widest;  // the largest value of a query
};

int32_t summed(ByteKeyKind kind, const int16_t* query, const int8_t* row, int64_t cols) {
  int64_t sum = 0;
  for (int64_t c = 0; c < cols; ++c) {
    const int64_t apart = int64_t{query[c]} - row[c];
    sum += kind == ByteKeyKind::squares ? apart * apart : -int64_t{query[c]} * row[c];
  }
  return static_cast<int32_t>(sum);
}

void expect_sums(const ByteKeyCase& shape) {
  const CounterRng rng(7, static_cast<uint64_t>(shape.cols));
  std::vector<int8_t> rows(static_cast<size_t>(shape.cols * shape.rows));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int8_t>(rng.word(i));
  rows[0] = -128;
  std::vector<int16_t> words(static_cast<size_t>(shape.cols));
  std::vector<int8_t> bytes(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<int16_t>(rng.below(rows.size() + i, static_cast<uint32_t>(2 * shape.widest)));
    words[i] = static_cast<int16_t>(words[i] - shape.widest);
    bytes[i] = static_cast<int8_t>(words[i]);
  }
  std::vector<uint32_t> numbers;
  for (int64_t i = 0; i < shape.rows; ++i) numbers.push_back(static_cast<uint32_t>((i * 5 + 3) % shape.rows));
  std::vector<int32_t> keys(numbers.size());
  for (const ByteKeyKind kind : {ByteKeyKind::squares, ByteKeyKind::products}) {
    for (const bool narrow : {false, true}) {
      if (narrow && shape.widest > 128) continue;
      const ByteKeyQuery query{narrow ? bytes.data() : nullptr, narrow ? nullptr : words.data()};
      byte_keys_cpu(kind, query, {rows.data(), shape.cols}, numbers.data(), shape.rows, keys.data());
      for (size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(keys[i], summed(kind, words.data(), rows.data() + numbers[i] * shape.cols, shape.cols));
      }
    }
  }
}

TEST(ByteKeys, AreTheSumsOnEveryInstructionSet) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const int64_t cols : {16, 32, 48, 112, 128, 2048}) {
      for (const int64_t rows : {1, 2, 3, 4, 5, 11, 64}) expect_sums({cols, rows, 128});
    }
    expect_sums({128, 9, 3900});
    expect_sums({32768, 3, 128});
  }
}

// Sums that would not fit in words, of the bytes that are farthest from each other; as a walk gives its query, which
// has bytes and words.
TEST(ByteKeys, OfTheFarthestBytes) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    constexpr int64_t kCols = 272;
    constexpr int64_t kRows = 9;
    for (const int8_t value : {int8_t{-128}, int8_t{127}}) {
      const auto other = static_cast<int8_t>(-1 - value);
      const std::vector<int8_t> rows(static_cast<size_t>(kRows * kCols), value);
      const std::vector<int8_t> bytes(static_cast<size_t>(kCols), other);
      const std::vector<int16_t> words(static_cast<size_t>(kCols), other);
      const std::vector<uint32_t> numbers{8, 1, 2, 3, 4, 5, 6, 7, 0};
      for (const ByteKeyQuery& query : {ByteKeyQuery{bytes.data(), nullptr}, ByteKeyQuery{nullptr, words.data()},
                                        ByteKeyQuery{bytes.data(), words.data()}}) {
        std::vector<int32_t> keys(static_cast<size_t>(kRows));
        byte_keys_cpu(ByteKeyKind::squares, query, {rows.data(), kCols}, numbers.data(), kRows, keys.data());
        EXPECT_EQ(keys, std::vector<int32_t>(static_cast<size_t>(kRows), 255 * 255 * kCols));
        byte_keys_cpu(ByteKeyKind::products, query, {rows.data(), kCols}, numbers.data(), kRows, keys.data());
        EXPECT_EQ(keys, std::vector<int32_t>(static_cast<size_t>(kRows), 128 * 127 * kCols));
      }
    }
  }
}

TEST(PackedByteRows, HaveTheKeysOfRowsAsTheyAre) {
  if (!PackedByteRows::suits()) GTEST_SKIP() << "this processor has no VNNI";
  const CounterRng rng(11, 0);
  for (const int64_t cols : {16, 48, 128, 2048, 32768}) {
    for (const int64_t rows : {1, 15, 64, 65, 100, 291}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << cols);
      if (rows * cols > 1 << 20) continue;
      std::vector<int8_t> bytes(static_cast<size_t>((rows + 1) * cols));
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<int8_t>(rng.word(i));
      std::fill_n(bytes.begin() + (rows - 1) * cols, cols, int8_t{-128});  // the farthest bytes
      if (rows == 15) std::fill_n(bytes.begin() + rows * cols, cols, int8_t{127});
      const int8_t* const query = bytes.data() + rows * cols;
      std::vector<int16_t> words(query, query + cols);
      for (const ByteKeyKind kind : {ByteKeyKind::squares, ByteKeyKind::products}) {
        const PackedByteRows packed(kind, {bytes.data(), cols}, rows, Resources());
        std::vector<int32_t> keys(static_cast<size_t>(rows + PackedByteRows::kTogether));
        packed.keys(query, 0, rows, keys.data());
        for (int64_t i = 0; i < rows; ++i) {
          ASSERT_EQ(keys[static_cast<size_t>(i)], summed(kind, words.data(), bytes.data() + i * cols, cols));
        }
        if (rows <= 64) continue;
        std::vector<int32_t> behind(keys.size());
        packed.keys(query, 64, rows - 64, behind.data());
        EXPECT_TRUE(std::equal(keys.begin() + 64, keys.begin() + rows, behind.begin()));
      }
    }
  }
}

}  // namespace
}  // namespace kith
