// The search of inverted lists on the GPU gives the bytes of a plain one: decode, canonical keys, sort.
#include "cuda/searched_lists.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kith {
namespace {

using namespace searched_lists;

std::vector<CodeFormat> formats_of(int64_t cols) {
  std::vector<CodeFormat> formats{stored(cols, DType::f32), stored(cols, DType::f16), stored(cols, DType::u8),
                                  scalar(cols, 8),          scalar(cols, 6),          scalar(cols, 4),
                                  product(cols, 1, 8)};
  for (const int64_t parts : {2, 5, 8, 16, 32, 50, 65}) {
    if (cols % parts != 0) continue;
    formats.push_back(product(cols, parts, 8));
    formats.push_back(product(cols, parts, 4 + static_cast<int>(parts % 4)));
  }
  for (const CodeNorm norm : {CodeNorm::decoded, CodeNorm::float32, CodeNorm::cqint8}) {
    formats.push_back(additive(cols, 3, 8, norm));
    formats.push_back(additive(cols, 2, 5, norm));
  }
  return formats;
}

TEST_F(CudaIvfSearchSmall, EveryCodeMetricAndWidth) {
  uint32_t seed = 1;
  for (const int64_t cols : {1, 2, 16, 100, 128, 130, 260}) {
    for (const CodeFormat& format : formats_of(cols)) {
      for (const KeyKind kind : kKinds) {
        for (const bool residual : {false, true}) {
          SCOPED_TRACE(::testing::Message()
                       << name_of(format) << ", kind " << static_cast<int>(kind) << ", residual " << residual);
          const Lists lists = make_lists(format, kind, residual, kLengths, ++seed);
          expect_same(lists, make_queries(lists, 4, 5, seed), 10);
        }
      }
    }
  }
}

TEST_F(CudaIvfSearchSmall, OrdinaryDataIsSearchedByProducts) {
  for (const CodeFormat& format :
       {product(128, 8, 8), product(128, 32, 8), product(128, 64, 8), product(80, 20, 8), stored(128, DType::f32),
        stored(128, DType::f16), scalar(128, 8), stored(200, DType::f32), additive(128, 7, 8),
        additive(128, 7, 8, CodeNorm::cqint8), additive(200, 4, 8, CodeNorm::qint8)}) {
    for (const KeyKind kind : kKinds) {
      const Lists lists = make_lists(format, kind, true, std::vector<int64_t>(30, 700), 77);
      for (const int64_t slots : {1, 4, 25}) {
        SCOPED_TRACE(::testing::Message() << name_of(format) << ", kind " << static_cast<int>(kind) << ", " << slots);
        const Queries queries = make_queries(lists, 20, slots, 78);
        EXPECT_LE(expect_same(lists, queries, 30), kind == KeyKind::l2 || kind == KeyKind::squared_l2 ? 0u : 3u);
      }
    }
  }
}

// Four neighbouring columns have two of them.
TEST_F(CudaIvfSearchSmall, CodewordsOfThreeColumns) {
  uint32_t seed = 200;
  for (const CodeFormat& format : {product(12, 4, 8), product(24, 8, 8), product(96, 32, 8), product(120, 40, 8)}) {
    for (const KeyKind kind : kKinds) {
      for (const bool residual : {false, true}) {
        SCOPED_TRACE(::testing::Message() << name_of(format) << ", kind " << static_cast<int>(kind));
        const Lists lists = make_lists(format, kind, residual, kLengths, ++seed);
        expect_same(lists, make_queries(lists, 9, 5, seed), 10);
        const Lists longer = make_lists(format, kind, residual, std::vector<int64_t>(12, 700), seed);
        expect_same(longer, make_queries(longer, 30, 8, seed), 20);
      }
    }
  }
}

TEST_F(CudaIvfSearchSmall, ManyQueriesOfAList) {
  for (const CodeFormat& format : {product(64, 16, 8), stored(40, DType::f32), stored(150, DType::f16)}) {
    const Lists lists = make_lists(format, KeyKind::squared_l2, true, {500, 900}, 5);
    for (const int64_t count : {1, 7, 8, 9, 127, 300, 700}) {
      SCOPED_TRACE(::testing::Message() << name_of(format) << ", " << count << " queries");
      expect_same(lists, make_queries(lists, count, 2, 6), 20);
    }
  }
}

// Most of the vectors in one list, so that it is longer than what the first pass keeps.
TEST_F(CudaIvfSearchSmall, OneHugeList) {
  std::vector<int64_t> lengths(40, 20);
  lengths[7] = 20000;
  for (const KeyKind kind : kKinds) {
    const Lists lists = make_lists(product(32, 8, 8), kind, true, lengths, 8);
    for (const int64_t slots : {1, 3, 40}) expect_same(lists, make_queries(lists, 40, slots, 9), 50);
  }
}

TEST_F(CudaIvfSearchSmall, OneListWithoutCentre) {
  for (const CodeFormat& format :
       {product(32, 8, 8), product(30, 10, 5), scalar(24, 8), stored(16, DType::f32), additive(32, 3, 8),
        additive(30, 7, 8, CodeNorm::cqint8), additive(24, 3, 8, CodeNorm::float32), additive(24, 3, 5)}) {
    for (const KeyKind kind : kKinds) {
      for (const float scale : {1.0f, 1e-30f, 1e17f}) {
        Lists lists = make_lists(format, kind, false, {3000}, 10, scale);
        lists.has_centres = false;
        expect_same(lists, make_queries(lists, scale == 1 ? 20 : 3, 1, 11, scale), 15);
      }
    }
  }
}

// So long that its threshold comes from a sample of all of it.
TEST_F(CudaIvfSearchSmall, OneLongList) {
  for (const CodeFormat& format :
       {product(16, 4, 8), additive(16, 3, 8), additive(16, 3, 8, CodeNorm::cqint8)}) {
    for (const KeyKind kind : {KeyKind::squared_l2, KeyKind::inner_product}) {
      Lists lists = make_lists(format, kind, false, {140'000}, 10);
      lists.has_centres = false;
      SCOPED_TRACE(::testing::Message() << name_of(format) << ", kind " << static_cast<int>(kind));
      EXPECT_EQ(expect_same(lists, make_queries(lists, 9, 1, 11), 40), 0u);
      expect_same(lists, make_queries(lists, 1, 1, 12), 40);
    }
  }
}

// More neighbours than vectors, and lists that all have nothing.
TEST_F(CudaIvfSearchSmall, FewerVectorsThanNeighbors) {
  for (const KeyKind kind : kKinds) {
    const Lists lists = make_lists(product(16, 4, 8), kind, true, kLengths, 12);
    for (const int64_t k : {1, 50, 400, 1700, 3000}) expect_same(lists, make_queries(lists, 6, 4, 13), k);
    const Lists empty = make_lists(product(16, 4, 8), kind, true, {0, 0, 0}, 14);
    expect_same(empty, make_queries(empty, 3, 2, 15), 5);
  }
}

// Every list, and more probes than there are lists.
TEST_F(CudaIvfSearchSmall, AllLists) {
  const Lists lists = make_lists(scalar(48, 8), KeyKind::l2, false, kLengths, 16);
  for (const int64_t slots : {12, 20}) expect_same(lists, make_queries(lists, 30, slots, 17), 40);
}

TEST_F(CudaIvfSearchSmall, RowsThatAFilterKeeps) {
  for (const CodeFormat& format :
       {product(32, 8, 8), stored(20, DType::f32), additive(32, 3, 8), additive(32, 3, 8, CodeNorm::qint8)}) {
    for (const KeyKind kind : kKinds) {
      const Lists lists = make_lists(format, kind, true, std::vector<int64_t>(20, 400), 28);
      for (const uint32_t one_in : {2u, 10u, 500u}) {
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

// Enough queries that a warp re-ranks each; with equal codes some have too many candidates for that, and some for a
// block.
TEST_F(CudaIvfSearchSmall, MoreThanAThousandQueries) {
  for (const KeyKind kind : kKinds) {
    for (const CodeFormat& format : {product(32, 8, 8), stored(24, DType::f32), stored(24, DType::f16), scalar(20, 8)}) {
      SCOPED_TRACE(::testing::Message() << name_of(format) << ", kind " << static_cast<int>(kind));
      const Lists lists = make_lists(format, kind, true, std::vector<int64_t>(30, 150), 61);
      for (const int64_t k : {1, 20, 170}) expect_same(lists, make_queries(lists, 1100, 5, 62), k);
    }
    Lists equal = make_lists(product(16, 4, 8), kind, false, {900, 300, 2500, 40}, 63);
    for (size_t i = 0; i < equal.codes.size(); ++i) equal.codes[i] = static_cast<uint8_t>(equal.codes[i] % 2);
    expect_same(equal, make_queries(equal, 1030, 2, 64), 30);
  }
}

// Lists whose last tile has any number of vectors, of all codes that the scan reads in a way of its own.
TEST_F(CudaIvfSearchSmall, ListsOfEveryLength) {
  std::vector<int64_t> lengths;
  for (const int64_t around : {0, 8, 16, 32, 64, 128, 192, 256, 320}) {
    for (int64_t length = std::max<int64_t>(0, around - 2); length <= around + 2; ++length) lengths.push_back(length);
  }
  for (const CodeFormat& format :
       {product(128, 8, 8), product(128, 16, 8), product(128, 32, 8), product(128, 64, 8), product(80, 20, 8),
        product(48, 4, 8), product(40, 20, 8), stored(128, DType::f32), stored(96, DType::f16), scalar(128, 8)}) {
    SCOPED_TRACE(name_of(format));
    const Lists lists = make_lists(format, KeyKind::squared_l2, true, lengths, 41);
    const auto all = static_cast<int64_t>(lengths.size());
    expect_same(lists, make_queries(lists, 70, all, 42), 10);
    expect_same(lists, make_queries(lists, 300, 6, 43), 20);
  }
}

TEST_F(CudaIvfSearchSmall, EveryBudgetGivesTheSameBytes) {
  const Lists lists = make_lists(product(32, 8, 8), KeyKind::l2, true, std::vector<int64_t>(30, 500), 31);
  const Queries queries = make_queries(lists, 100, 10, 32);
  for (const int64_t bytes : {int64_t{1}, int64_t{300} << 10, int64_t{3} << 20})
    expect_same(lists, queries, 10, {}, bytes);
}

}  // namespace
}  // namespace kith
