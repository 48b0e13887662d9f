// Lists larger than a GPU's memory limit are searched in pieces, with the bytes of the CPU.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"

#include <kith/error.hpp>
#include <kith/index.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

class CudaListsInPieces : public OnCuda {};

Resources with_device_limit(int64_t bytes) {
  ResourceOptions options = cuda_options();
  options.device_memory_limit = bytes;
  return Resources(options);
}

// What a search needs at least on the GPU, as its refusal names it.
int64_t named_limit(const Index& index, const MatrixView& queries, const SearchParams& params) {
  const auto refused = testing::thrown<OutOfMemory>([&] { (void)index.search(queries, params, with_device_limit(1)); });
  return refused ? refused->bytes_needed() : 0;
}

// Whether a search has gone over pieces, as its log says.
bool is_in_pieces(const Index& index, const MatrixView& queries, const SearchParams& params, int64_t limit) {
  ResourceOptions options = cuda_options();
  options.device_memory_limit = limit;
  bool found = false;
  options.log = [&](LogLevel, std::string_view text) { found |= text.find("searched in") != std::string_view::npos; };
  (void)index.search(queries, params, Resources(options));
  return found;
}

struct PiecedCase {
  const char* factory;
  Metric metric;
  int64_t k;
  int64_t probes;
};

TEST_F(CudaListsInPieces, AnswerAsOnTheCpu) {
  constexpr int64_t kRows = 150'000;
  const auto base = make_floats(Shape::gaussian, kRows, 32, 1);
  const auto queries = make_floats(Shape::gaussian, 300, 32, 2);
  std::vector<uint8_t> mask(static_cast<size_t>(kRows));
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 1;
  for (const PiecedCase& tried : {PiecedCase{"IVF200,PQ16", Metric::l2, 10, 16}, PiecedCase{"IVF200,PQ16", Metric::cosine, 10, 16},
                                  PiecedCase{"IVF200,SQ8", Metric::inner_product, 7, 200}, PiecedCase{"IVF64,Flat", Metric::l2, 100, 3},
                                  PiecedCase{"IVF5000,PQ8", Metric::sqeuclidean, 300, 1}}) {
    SCOPED_TRACE(std::string(tried.factory) + " " + std::string(name_of(tried.metric)));
    Index index(tried.factory, {.metric = tried.metric});
    index.train(base.view().slice(0, 30'000), on_cpu());
    index.add(base.view().slice(0, 100'000), Ownership::copy, on_cpu());
    index.add(base.view().slice(100'000, 50'000), Ownership::copy, on_cpu());
    const SearchParams params{.k = tried.k, .probes = tried.probes};
    const int64_t least = named_limit(index, queries.view(), params);
    ASSERT_GT(least, 0);
    EXPECT_THROW((void)index.search(queries.view(), params, with_device_limit(least - 1)), OutOfMemory);
    SearchParams filtered = params;
    filtered.filter = RowFilter::mask(mask.data(), kRows);
    expect_same(index.search(queries.view(), filtered, with_device_limit(named_limit(index, queries.view(), filtered))),
                index.search(queries.view(), filtered, on_cpu()), "with a filter");
    const Neighbors expected = index.search(queries.view(), params, on_cpu());
    for (const int64_t limit : {least, least + least / 4, 2 * least, 8 * least}) {
      expect_same(index.search(queries.view(), params, with_device_limit(limit)), expected, "limit " + std::to_string(limit));
    }
    // Lists that have been in pieces come to the GPU as a whole once there is room, and are searched there.
    expect_same(index.search(queries.view(), params, on_cuda()), expected, "whole");
    EXPECT_FALSE(is_in_pieces(index, queries.view(), params, 8 * least));
  }
}

// Long lists of codes whose sub-vectors have three columns: a sample bounds what is looked for, and queries go in several
// batches where there are many.
TEST_F(CudaListsInPieces, ManyQueriesOfLongLists) {
  constexpr int64_t kRows = 600'000;
  constexpr int64_t kListBytes = kRows * 32;  // without row numbers
  const auto base = make_floats(Shape::gaussian, kRows, 96, 3);
  const auto queries = make_floats(Shape::gaussian, 4000, 96, 4);
  for (const PiecedCase& tried : {PiecedCase{"IVF24,PQ32", Metric::l2, 10, 12}, PiecedCase{"IVF24,PQ32", Metric::sqeuclidean, 100, 5},
                                  PiecedCase{"IVF24,PQ32", Metric::inner_product, 10, 3}}) {
    SCOPED_TRACE(std::string(tried.factory) + " " + std::string(name_of(tried.metric)));
    Index index(tried.factory, {.metric = tried.metric});
    index.train(base.view().slice(0, 12'000), on_cuda());
    index.add(base.view(), Ownership::copy, on_cuda());
    const SearchParams params{.k = tried.k, .probes = tried.probes};
    const int64_t least = named_limit(index, queries.view(), params);
    EXPECT_LT(least, kListBytes);
    std::vector<Neighbors> pieced;
    for (const int64_t limit : {least, least + least / 4, 2 * least}) {
      EXPECT_TRUE(limit >= kListBytes || is_in_pieces(index, queries.view(), params, limit)) << limit;
      pieced.push_back(index.search(queries.view(), params, with_device_limit(limit)));
    }
    const Neighbors expected = index.search(queries.view(), params, on_cuda());
    for (const Neighbors& found : pieced) expect_same(found, expected, "in pieces");
  }
}

// The smallest rows are found among many equal distances, whichever piece or sample they were met in first.
TEST_F(CudaListsInPieces, EqualDistances) {
  constexpr int64_t kRows = 120'000;
  auto base = make_floats(Shape::gaussian, kRows, 8, 5);
  for (int64_t i = 0; i < kRows * 8; ++i) base.values[static_cast<size_t>(i)] = std::round(base.values[static_cast<size_t>(i)] * 2);
  auto queries = make_floats(Shape::gaussian, 500, 8, 6);
  for (int64_t i = 0; i < 500 * 8; ++i) queries.values[static_cast<size_t>(i)] = std::round(queries.values[static_cast<size_t>(i)] * 2);
  for (const char* const factory : {"IVF40,Flat", "IVF40,SQ8"}) {
    SCOPED_TRACE(factory);
    Index index(factory);
    index.train(base.view().slice(0, 10'000), on_cpu());
    index.add(base.view(), Ownership::copy, on_cpu());
    for (const int64_t k : {1, 10, 40}) {
      const SearchParams params{.k = k, .probes = 20};
      const Neighbors expected = index.search(queries.view(), params, on_cpu());
      const int64_t least = named_limit(index, queries.view(), params);
      for (const int64_t limit : {least, least + least / 2}) {
        expect_same(index.search(queries.view(), params, with_device_limit(limit)), expected, "k " + std::to_string(k));
      }
    }
  }
}

// One list is longer than a piece of others, some are empty, some have fewer vectors than are asked for, and rows are
// removed; few queries look at few of the pieces, many at all of them.
TEST_F(CudaListsInPieces, UnevenLists) {
  constexpr int64_t kRows = 1'000'000;
  constexpr int64_t kCols = 32;
  auto base = make_floats(Shape::gaussian, kRows, kCols, 7);
  auto training = make_floats(Shape::gaussian, 40'000, kCols, 8);
  const auto scale = [](float* row, float by, float plus) {
    for (int64_t c = 0; c < kCols; ++c) row[c] = row[c] * by + plus;
  };
  for (int64_t i = 0; i < kRows; i += 8) scale(base.row(i), 0.2f, 3.0f);  // close together
  for (int64_t i = 0; i < 40'000; ++i) {
    if (i % 4 == 0) scale(training.row(i), 1.0f, 50.0f);  // where no row is
    if (i % 64 == 1) scale(training.row(i), 0.2f, 3.0f);
  }
  const auto queries = make_floats(Shape::gaussian, 3000, kCols, 9);
  std::vector<int64_t> gone;
  for (int64_t i = 5; i < kRows; i += 9) gone.push_back(i);
  struct Asked {
    int64_t queries, k, probes;
    bool filtered;
  };
  for (const char* const factory : {"IVF64,PQ32", "IVF64,SQ8", "IVF64,Flat", "IVF1500,PQ32"}) {
    Index index(factory);
    index.train(training.view(), on_cuda());
    index.add(base.view().slice(0, 750'000), Ownership::copy, on_cuda());
    index.add(base.view().slice(750'000, 250'000), Ownership::copy, on_cuda());
    index.remove({gone.data(), static_cast<int64_t>(gone.size()), {}}, on_cpu());
    std::vector<uint8_t> mask(static_cast<size_t>(index.size()));
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 5 < 2;
    for (const Asked& asked :
         {Asked{1, 10, 1, false}, Asked{1, 10, 64, false}, Asked{3, 10, 2, true}, Asked{50, 300, 3, false},
          Asked{50, 300, 64, true}, Asked{3000, 10, 8, false}, Asked{3000, 1, 1, true}}) {
      SCOPED_TRACE(::testing::Message() << factory << ", " << asked.queries << " queries, k " << asked.k << ", probes "
                                        << asked.probes << (asked.filtered ? ", filtered" : ""));
      SearchParams params{.k = asked.k, .probes = asked.probes};
      if (asked.filtered) params.filter = RowFilter::mask(mask.data(), index.size());
      const MatrixView looking = queries.view().slice(0, asked.queries);
      const Neighbors expected = index.search(looking, params, on_cpu());
      const int64_t least = named_limit(index, looking, params);
      ASSERT_GT(least, 0);
      EXPECT_TRUE(is_in_pieces(index, looking, params, least));
      for (const int64_t limit : {least, least + least / 2, 2 * least}) {
        expect_same(expected, index.search(looking, params, with_device_limit(limit)), std::to_string(limit));
      }
    }
  }
}

// Arrays that are pinned, codes that repeat and codes that do not: what the first search finds out, later ones use.
TEST_F(CudaListsInPieces, PinnedLists) {
  constexpr int64_t kRows = 9'000'000;  // whose numbers alone are of more than 32 MiB
  constexpr int64_t kLimit = int64_t{50} << 20;
  for (const uint32_t largest : {255u, 1u}) {
    SCOPED_TRACE(largest);
    const auto base = reference::make_bytes(kRows, 8, 11, largest);
    const auto bytes = reference::make_bytes(3000, 8, 12, largest);
    auto queries = make_floats(Shape::gaussian, 3000, 8, 12);
    for (size_t i = 0; i < queries.values.size(); ++i) {
      queries.values[i] = static_cast<float>(bytes.values[i]) + queries.values[i] * static_cast<float>(largest) / 8;
    }
    Index index("IVF256,PQ8");
    index.train(base.view().slice(0, 50'000), on_cuda());
    index.add(base.view(), Ownership::copy, on_cuda());
    const SearchParams params{.k = 10, .probes = 16};
    EXPECT_TRUE(is_in_pieces(index, queries.view(), params, kLimit));
    std::vector<Neighbors> pieced;
    for (int repeat = 0; repeat < 3; ++repeat) {
      pieced.push_back(index.search(queries.view(), params, with_device_limit(kLimit)));
    }
    // Few queries look at few pieces; the others are not copied.
    const MatrixView one = queries.view().slice(17, 1);
    const Neighbors of_one = index.search(one, {.k = 10, .probes = 2}, with_device_limit(kLimit));
    const Neighbors expected = index.search(queries.view(), params, on_cuda());
    for (const Neighbors& found : pieced) expect_same(expected, found, "in pieces");
    expect_same(index.search(one, {.k = 10, .probes = 2}, on_cuda()), of_one, "one query");
  }
}

class CudaListsInPiecesSmall : public OnCuda {};

TEST_F(CudaListsInPiecesSmall, FewQueries) {
  constexpr int64_t kRows = 100'000;
  const auto base = make_floats(Shape::gaussian, kRows, 16, 1);
  const auto queries = make_floats(Shape::gaussian, 40, 16, 2);
  Index index("IVF32,Flat");
  index.train(base.view().slice(0, 5000), on_cpu());
  index.add(base.view(), Ownership::copy, on_cpu());
  const SearchParams params{.k = 10, .probes = 4};
  const Neighbors expected = index.search(queries.view(), params, on_cpu());
  const int64_t least = named_limit(index, queries.view(), params);
  for (const int64_t limit : {least, least + least / 2}) {
    EXPECT_TRUE(is_in_pieces(index, queries.view(), params, limit));
    expect_same(index.search(queries.view(), params, with_device_limit(limit)), expected, "limit " + std::to_string(limit));
  }
  expect_same(index.search(queries.view(), params, on_cuda()), expected, "whole");
}

// Pieces are less than the lists by far, and nothing of them stays on the GPU.
TEST_F(CudaListsInPieces, TakeLessThanTheLists) {
  constexpr int64_t kRows = 1'000'000;
  const auto base = make_floats(Shape::gaussian, kRows, 40, 1);  // codes of more than 32 MiB, which are pinned
  const auto queries = make_floats(Shape::gaussian, 1000, 40, 2);
  Index index("IVF1000,SQ8");
  index.train(base.view().slice(0, 50'000), on_cpu());
  index.add(base.view(), Ownership::copy, on_cpu());
  const SearchParams params{.k = 10, .probes = 8};
  const int64_t least = named_limit(index, queries.view(), params);
  EXPECT_LT(least, kRows * 44 / 2);
  const Resources resources = with_device_limit(least + (2 << 20));
  EXPECT_TRUE(is_in_pieces(index, queries.view(), params, least + (2 << 20)));
  const Neighbors expected = index.search(queries.view(), params, on_cpu());
  for (int repeat = 0; repeat < 3; ++repeat) {
    expect_same(index.search(queries.view(), params, resources), expected, "again");
  }
  EXPECT_LT(index.info().bytes.device, kRows);  // the model alone
  const DeviceMatrix there(queries.view());
  const DeviceResult result(1000, 10);
  index.search(there.view(), result.view, params, resources);
  std::vector<int64_t> ids(10'000);
  result.ids.read(ids.data());
  EXPECT_EQ(std::memcmp(ids.data(), expected.ids(), ids.size() * sizeof(int64_t)), 0);
  expect_same(index.search(queries.view(), params, on_cuda()), expected, "whole, from pinned memory");
}

}  // namespace
}  // namespace kith
