// Integer keys of a query with rows of four bits a column: those of the bytes that they stand for, for every
// instruction set, number of rows and columns.
#include "kernels/distance/nibble_keys_cpu.hpp"

#include "core/random.hpp"
#include "kernels/forced_target.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kith {
namespace {

struct NibbleCase {
  int64_t cols;
  int64_t rows;
  int32_t widest;  // the largest value of a query
};

struct NibbleRows {
  explicit NibbleRows(const NibbleCase& shape)
      : packed(static_cast<size_t>(nibble_bytes(shape.cols) * shape.rows)),
        bytes(static_cast<size_t>(shape.cols * shape.rows)) {
    const CounterRng rng(9, static_cast<uint64_t>(shape.cols));
    std::vector<int8_t> nibbles(static_cast<size_t>(shape.cols));
    for (int64_t i = 0; i < shape.rows; ++i) {
      for (int64_t c = 0; c < shape.cols; ++c) {
        const auto drawn = static_cast<int>(rng.below(static_cast<uint64_t>(i * shape.cols + c), 16));
        nibbles[static_cast<size_t>(c)] = static_cast<int8_t>(drawn + kLeastNibble);
        bytes[static_cast<size_t>(i * shape.cols + c)] = static_cast<int8_t>((drawn + kLeastNibble) * kNibbleStep);
      }
      pack_nibbles(nibbles.data(), shape.cols, packed.data() + i * nibble_bytes(shape.cols));
    }
  }

  std::vector<int8_t> packed;
  std::vector<int8_t> bytes;  // what they stand for
};

void expect_keys_of_bytes(const NibbleCase& shape) {
  const NibbleRows rows(shape);
  std::vector<int8_t> unpacked(rows.bytes.size());
  for (int64_t i = 0; i < shape.rows; ++i) {
    unpack_nibbles(rows.packed.data() + i * nibble_bytes(shape.cols), shape.cols, unpacked.data() + i * shape.cols);
  }
  ASSERT_EQ(unpacked, rows.bytes);
  const CounterRng rng(11, static_cast<uint64_t>(shape.rows));
  std::vector<int16_t> words(static_cast<size_t>(shape.cols));
  std::vector<int8_t> bytes(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<int16_t>(rng.below(i, static_cast<uint32_t>(2 * shape.widest)));
    words[i] = static_cast<int16_t>(words[i] - shape.widest);
    bytes[i] = static_cast<int8_t>(words[i]);
  }
  std::vector<uint32_t> numbers;
  for (int64_t i = 0; i < shape.rows; ++i) numbers.push_back(static_cast<uint32_t>((i * 5 + 3) % shape.rows));
  std::vector<int32_t> keys(numbers.size());
  std::vector<int32_t> wanted(numbers.size());
  for (const ByteKeyKind kind : {ByteKeyKind::squares, ByteKeyKind::products}) {
    byte_keys_cpu(kind, {nullptr, words.data()}, {rows.bytes.data(), shape.cols}, numbers.data(), shape.rows,
                  wanted.data());
    for (const bool narrow : {false, true}) {
      if (narrow && shape.widest > 128) continue;
      const ByteKeyQuery query{narrow ? bytes.data() : nullptr, narrow ? nullptr : words.data()};
      nibble_keys_cpu(kind, query, {rows.packed.data(), nibble_bytes(shape.cols)}, numbers.data(), shape.rows,
                      keys.data());
      ASSERT_EQ(keys, wanted) << shape.cols << " columns, " << shape.rows << " rows";
    }
  }
}

TEST(NibbleKeys, AreThoseOfTheBytesOnEveryInstructionSet) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const int64_t cols : {32, 64, 96, 128, 160, 768, 2048}) {
      for (const int64_t rows : {1, 2, 3, 4, 5, 11, 64}) expect_keys_of_bytes({cols, rows, 128});
    }
    expect_keys_of_bytes({128, 9, 3900});
    expect_keys_of_bytes({32768, 3, 128});
  }
}

// The query and the rows that are farthest from each other, over as many columns as a walk takes.
TEST(NibbleKeys, OfTheFarthestRows) {
  for (const std::string& target : targets_for_next_case()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    constexpr int64_t kCols = 32768;
    const std::vector<int8_t> rows(static_cast<size_t>(nibble_bytes(kCols)), static_cast<int8_t>(0x88));  // all -8
    const std::vector<int8_t> query(static_cast<size_t>(kCols), 127);
    const uint32_t number = 0;
    int32_t key = 0;
    nibble_keys_cpu(ByteKeyKind::squares, {query.data(), nullptr}, {rows.data(), nibble_bytes(kCols)}, &number, 1,
                    &key);
    EXPECT_EQ(key, 191 * 191 * kCols);
    nibble_keys_cpu(ByteKeyKind::products, {query.data(), nullptr}, {rows.data(), nibble_bytes(kCols)}, &number, 1,
                    &key);
    EXPECT_EQ(key, 64 * 127 * kCols);
  }
}

}  // namespace
}  // namespace kith
