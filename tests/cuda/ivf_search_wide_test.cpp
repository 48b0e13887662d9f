// The search of inverted lists of wide vectors on the GPU: the bytes of a plain one, whatever the number of columns.
#include "cuda/searched_lists.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kith {
namespace {

using namespace searched_lists;

// Codewords of which eight columns lie together always, sometimes or never; codes whose numbers lie on no multiple
// of 16.
std::vector<CodeFormat> wide_formats(int64_t cols) {
  std::vector<CodeFormat> formats{stored(cols, DType::f32), stored(cols, DType::f16), scalar(cols, 8)};
  for (const int64_t each : {8, 24, 12, 20, 4, 6, 5, 2}) {
    if (cols % each == 0) formats.push_back(product(cols, cols / each, 8));
  }
  formats.push_back(additive(cols, 3, 8));
  return formats;
}

TEST_F(CudaIvfSearchSmall, WideVectorsOfEveryCode) {
  uint32_t seed = 100;
  for (const int64_t cols : {129, 200, 240}) {
    for (const CodeFormat& format : wide_formats(cols)) {
      for (const KeyKind kind : {KeyKind::l2, KeyKind::cosine}) {
        SCOPED_TRACE(::testing::Message() << name_of(format) << ", kind " << static_cast<int>(kind));
        const Lists lists = make_lists(format, kind, true, kLengths, ++seed);
        expect_same(lists, make_queries(lists, 5, 6, seed), 10);
      }
    }
  }
}

TEST_F(CudaIvfSearchSmall, VeryWideVectors) {
  uint32_t seed = 300;
  for (const int64_t cols : {384, 768, 1024, 1536, 3072}) {
    for (const CodeFormat& format :
         {stored(cols, DType::f32), scalar(cols, 8), product(cols, cols / 8, 8), product(cols, 64, 8)}) {
      for (const KeyKind kind : {KeyKind::l2, KeyKind::inner_product, KeyKind::cosine}) {
        SCOPED_TRACE(::testing::Message() << name_of(format) << ", kind " << static_cast<int>(kind));
        const Lists lists = make_lists(format, kind, true, {40, 0, 131, 1, 64, 95}, ++seed);
        expect_same(lists, make_queries(lists, 4, 4, seed), 1 + int64_t{seed % 10});
      }
    }
  }
}

TEST_F(CudaIvfSearchSmall, WideVectorsAreSearchedByProducts) {
  for (const CodeFormat& format : {product(256, 32, 8), product(768, 96, 8), stored(768, DType::f32), scalar(300, 8)}) {
    for (const KeyKind kind : kKinds) {
      SCOPED_TRACE(::testing::Message() << name_of(format) << ", kind " << static_cast<int>(kind));
      const Lists lists = make_lists(format, kind, true, std::vector<int64_t>(12, 300), 77);
      EXPECT_LE(expect_same(lists, make_queries(lists, 20, 6, 78), 30), has_differences(kind) ? 0u : 3u);
    }
  }
}

// Every number of queries that a block multiplies in a way of its own, and more than it has places for.
TEST_F(CudaIvfSearchSmall, WideListsWithManyQueries) {
  for (const CodeFormat& format : {product(192, 24, 8), stored(136, DType::f32)}) {
    for (const KeyKind kind : {KeyKind::squared_l2, KeyKind::cosine}) {
      const Lists lists = make_lists(format, kind, true, {500, 190}, 5);
      for (const int64_t count : {1, 31, 33, 65, 127, 129, 192, 193, 500}) {
        SCOPED_TRACE(::testing::Message() << name_of(format) << ", " << count << " queries");
        expect_same(lists, make_queries(lists, count, 2, 6), 20);
      }
    }
  }
}

TEST_F(CudaIvfSearchSmall, WideListsOfEveryLength) {
  std::vector<int64_t> lengths;
  for (const int64_t around : {0, 64, 128, 192, 320}) {
    for (int64_t length = std::max<int64_t>(0, around - 1); length <= around + 1; ++length) lengths.push_back(length);
  }
  lengths.push_back(5000);
  for (const CodeFormat& format : {product(200, 25, 8), stored(200, DType::f32), scalar(132, 8)}) {
    SCOPED_TRACE(name_of(format));
    const Lists lists = make_lists(format, KeyKind::squared_l2, true, lengths, 41);
    expect_same(lists, make_queries(lists, 30, static_cast<int64_t>(lengths.size()), 42), 10);
    for (const int64_t k : {100, 1000}) expect_same(lists, make_queries(lists, 9, 6, 43), k);
  }
}

// Lists so far apart that a query's reach ends before most of them begin.
TEST_F(CudaIvfSearchSmall, WideListsThatAreOutOfReach) {
  for (const CodeFormat& format : {product(160, 20, 8), stored(144, DType::f32)}) {
    const Lists lists = make_lists(format, KeyKind::l2, true, std::vector<int64_t>(25, 330), 51, 1, 200);
    for (const int64_t slots : {3, 25}) expect_same(lists, make_queries(lists, 150, slots, 52), 10);
  }
}

TEST_F(CudaIvfSearchSmall, WideRowsThatAFilterKeeps) {
  for (const CodeFormat& format : {product(200, 50, 8), stored(150, DType::f16)}) {
    for (const KeyKind kind : kKinds) {
      const Lists lists = make_lists(format, kind, true, std::vector<int64_t>(12, 300), 28);
      for (const uint32_t one_in : {2u, 100u}) {
        Numbers numbers(29);
        std::vector<uint64_t> kept(static_cast<size_t>(lists.count() / 64 + 1));
        for (int64_t row = 0; row < lists.count(); ++row) {
          if (numbers.below(one_in) == 0) kept[static_cast<size_t>(row / 64)] |= uint64_t{1} << (row % 64);
        }
        expect_same(lists, make_queries(lists, 15, 8, 30), 12, kept);
      }
    }
  }
}

TEST_F(CudaIvfSearchSmall, WideListsWithinEveryBudget) {
  const Lists lists = make_lists(product(256, 32, 8), KeyKind::l2, true, std::vector<int64_t>(20, 300), 31);
  const Queries queries = make_queries(lists, 60, 10, 32);
  for (const int64_t bytes : {int64_t{1}, int64_t{300} << 10, int64_t{3} << 20}) {
    expect_same(lists, queries, 10, {}, bytes);
  }
}

}  // namespace
}  // namespace kith
