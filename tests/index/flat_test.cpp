#include <kith/error.hpp>
#include <kith/index.hpp>
#include <kith/knn.hpp>

#include "core/cpu_target.hpp"
#include "core/memory_budget.hpp"
#include "index/index_check.hpp"
#include "kernels/panels/panel_format.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

template <typename Q, typename X>
void expect_searches(const Index& index, const reference::Matrix<Q>& queries, const reference::Matrix<X>& base,
                     int64_t k, const Resources& resources) {
  const reference::Result truth = reference::knn(queries, base, {k, index.params().metric});
  const Neighbors found = index.search(queries.view(), {.k = k}, resources);
  EXPECT_EQ(std::memcmp(found.ids(), truth.ids.data(), truth.ids.size() * sizeof(int64_t)), 0);
  EXPECT_EQ(std::memcmp(found.distances(), truth.distances.data(), truth.distances.size() * sizeof(float)), 0);
}

TEST(Flat, EqualsTheReferenceHoweverItWasFilled) {
  const Resources resources = on_cpu();
  const auto base = make_floats(Shape::gaussian, 1000, 24, 1);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
    for (const bool prepare : {true, false}) {
      for (const Ownership ownership : {Ownership::copy, Ownership::borrow}) {
        for (const int64_t step : {1000, 300, 1}) {
          Index index("Flat", {metric, true, prepare});
          for (int64_t at = 0; at < 1000; at += step) {
            index.add(base.view().slice(at, std::min(step, 1000 - at)), ownership, resources);
          }
          EXPECT_EQ(index.size(), 1000);
          EXPECT_EQ(index.dimension(), 24);
          expect_searches(index, make_floats(Shape::gaussian, 2, 24, 2), base, 7, resources);
          expect_searches(index, make_floats(Shape::gaussian, 30, 24, 3), base, 7, resources);
        }
      }
    }
  }
}

TEST(Flat, HoldsBytesAndAnswersFloats) {
  const Resources resources = on_cpu();
  const auto base = make_bytes(500, 20, 1);
  Index index("Flat", {Metric::sqeuclidean});
  index.add(base.view(), Ownership::copy, resources);
  expect_searches(index, make_bytes(20, 20, 2), base, 9, resources);
  expect_searches(index, make_floats(Shape::gaussian, 20, 20, 3), base, 9, resources);
}

TEST(Flat, CountsBitsForFewQueriesAndMany) {
  const Resources resources = on_cpu();
  for (const int64_t cols : {3, 16, 40}) {
    const auto base = make_bytes(10'000, cols, 1);
    for (const bool prepare : {true, false}) {
      Index index("Flat", {Metric::hamming, true, prepare});
      index.add(base.view().slice(0, 4'100), Ownership::copy, resources);
      index.add(base.view().slice(4'100, 5'900), Ownership::copy, resources);
      for (const int64_t queries : {1, 2, 5, 20})
        expect_searches(index, make_bytes(queries, cols, 2), base, 9, resources);
    }
  }
}

TEST(Flat, HardDataStaysExact) {
  const Resources resources = on_cpu();
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(shape);
    const auto base = make_floats(shape, 600, 17, 1);
    Index index("Flat", {Metric::l2});
    index.add(base.view(), Ownership::copy, resources);
    expect_searches(index, make_floats(shape, 12, 17, 2), base, 5, resources);
  }
}

TEST(Flat, ABorrowedBaseIsNotCopied) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = 1;
  const Resources resources(options);
  const auto base = make_floats(Shape::gaussian, 10000, 32, 1);
  Index index("Flat", {Metric::l2, true, false});
  index.add(base.view(), Ownership::borrow, resources);
  EXPECT_EQ(resources.host_memory()->used(), 0);
}

TEST(Flat, IsSearchedWithoutItsPreparedCopyWhereThatDoesNotFit) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = 1;
  options.host_memory_limit = 1 << 20;
  std::string logged;
  options.log = [&](LogLevel, std::string_view text) { logged += text; };
  const Resources resources(options);
  const auto base = make_floats(Shape::gaussian, 9000, 32, 1);  // 1.1 MB
  Index index("Flat", {Metric::l2});
  index.add(base.view(), Ownership::borrow, resources);
  EXPECT_THAT(logged, ::testing::HasSubstr("without a prepared copy"));
  expect_searches(index, make_floats(Shape::gaussian, 20, 32, 2), base, 5, resources);
}

TEST(Flat, APreparedCopyNeverTakesTheMemoryOfTheSearch) {
  const auto base = make_floats(Shape::gaussian, 3000, 32, 1);  // 384,000 bytes
  const auto queries = make_floats(Shape::gaussian, 20, 32, 2);
  for (int64_t limit = 300000; limit < 1500000; limit += 100000) {
    ResourceOptions options;
    options.device = Device::cpu();
    options.threads = 2;
    options.host_memory_limit = limit;
    const Resources resources(options);
    Index index("Flat");
    index.add(base.view(), Ownership::borrow, resources);
    expect_searches(index, queries, base, 5, resources);
  }
}

TEST(Flat, CopiesOfManyMegabytesAndOfRowsThatLieApartAreWhole) {
  const int64_t rows = 5000;
  const auto wide = make_floats(Shape::gaussian, rows, 300, 1);
  const MatrixView apart(wide.view().data(), DType::f32, {rows, 200, 300});
  Index index("Flat", {Metric::l2, true, false});
  index.add(apart.slice(0, 3000), Ownership::copy, on_cpu());
  index.add(apart.slice(3000, 2000), Ownership::copy, on_cpu());  // both in a new copy
  const Neighbors found = index.search(apart, {.k = 1}, on_cpu());
  for (int64_t i = 0; i < rows; ++i) {
    ASSERT_EQ(found.ids(i)[0], i);
    ASSERT_EQ(found.distances(i)[0], 0);
  }
}

// Where rows are not prepared as they are added, since a GPU might search them.
TEST(Flat, IsPreparedOnceSingleQueriesHaveTakenAsLong) {
  if (!has_rounded_product(cpu_extensions())) GTEST_SKIP() << "few queries use no copy on this processor";
  const auto base = make_floats(Shape::gaussian, 5000, 64, 1);
  const auto queries = make_floats(Shape::gaussian, 40, 64, 2);
  Index index("Flat");
  index.add(base.view(), Ownership::copy, Resources());
  for (int64_t i = 0; i < queries.rows; ++i) {
    const MatrixView one(queries.row(i), 1, queries.cols);
    const Neighbors found = index.search(one, {.k = 3}, on_cpu());
    const Neighbors exact = knn(one, base.view(), {.k = 3}, on_cpu());
    ASSERT_EQ(std::memcmp(found.ids(), exact.ids(), 3 * sizeof(int64_t)), 0) << i;
    ASSERT_EQ(std::memcmp(found.distances(), exact.distances(), 3 * sizeof(float)), 0) << i;
  }
  EXPECT_GT(index.bytes().host, base.rows * base.cols * int64_t{sizeof(float)});
}

TEST(Flat, SaysWhatItHolds) {
  const auto base = make_floats(Shape::gaussian, 3000, 32, 1);
  const int64_t row_bytes = int64_t{3000} * 32 * 4;
  for (const bool prepare : {false, true}) {
    for (const Ownership ownership : {Ownership::copy, Ownership::borrow}) {
      const Resources resources = on_cpu();
      Index index("Flat", {Metric::l2, true, prepare});
      EXPECT_EQ(index.bytes().host, 0);
      EXPECT_EQ(index.device(), Device::automatic());
      index.add(base.view(), ownership, resources);
      EXPECT_EQ(index.device(), Device::cpu());
      EXPECT_EQ(index.bytes().host, resources.host_memory()->used());
      EXPECT_EQ(index.bytes().host == (ownership == Ownership::copy ? row_bytes : 0), !prepare);
      EXPECT_EQ(index.bytes().device, 0);
    }
  }
}

TEST(Flat, TellsHowFarItsPreparationIs) {
  int64_t last = -1;
  const Resources resources = on_cpu().with_progress([&](const Progress& progress) {
    if (progress.stage == "prepare") last = progress.done;
  });
  const auto base = make_floats(Shape::gaussian, 3000, 32, 1);
  Index index("Flat");
  index.add(base.view(), Ownership::borrow, resources);
  index.search(make_floats(Shape::gaussian, 20, 32, 2).view(), {.k = 5}, resources);
  EXPECT_EQ(last, 3000);
}

TEST(Flat, UncheckedNansComeLast) {
  const Resources resources = on_cpu();
  auto base = make_floats(Shape::gaussian, 300, 8, 1);
  base.row(7)[1] = NAN;
  Index index("Flat", {Metric::cosine, false});
  index.add(base.view(), Ownership::copy, resources);
  expect_searches(index, make_floats(Shape::gaussian, 20, 8, 2), base, 300, resources);
}

TEST(Flat, AnEmptyIndexGivesPadding) {
  const Index index("Flat");
  const auto queries = make_floats(Shape::gaussian, 2, 5, 1);
  EXPECT_EQ(index.search(queries.view(), {.k = 3}, on_cpu()).ids(1)[2], -1);
  EXPECT_EQ(index.size(), 0);
}

TEST(Flat, RefusesWhatDoesNotFitAndKeepsWhatItHas) {
  const Resources resources = on_cpu();
  EXPECT_THROW(Index("Falt"), InvalidArgument);
  Index index("Flat");
  auto base = make_floats(Shape::gaussian, 50, 8, 1);
  index.add(base.view(), Ownership::copy, resources);
  EXPECT_THROW(index.add(make_floats(Shape::gaussian, 5, 9, 1).view(), Ownership::copy, resources), InvalidArgument);
  EXPECT_THROW(index.add(make_bytes(5, 8, 1).view(), Ownership::copy, resources), InvalidArgument);
  auto broken = make_floats(Shape::gaussian, 5, 8, 1);
  broken.row(3)[1] = NAN;
  try {
    index.add(broken.view(), Ownership::copy, resources);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("added row 3 "));
  }
  EXPECT_THROW(index.search(make_floats(Shape::gaussian, 5, 9, 1).view(), {.k = 3}, resources), InvalidArgument);
  EXPECT_THROW(index.search(base.view(), {.k = 0}, resources), InvalidArgument);
  EXPECT_THROW(index.search(base.view(), {.k = INT64_MAX}, resources), OutOfMemory);
  EXPECT_EQ(index.size(), 50);
  expect_searches(index, make_floats(Shape::gaussian, 3, 8, 2), base, 4, resources);
}

TEST(Flat, MayBeSearchedButNotChangedFromItsOwnSinks) {
  const auto base = make_floats(Shape::gaussian, 400, 16, 1);
  Index index("Flat");
  index.add(base.view().slice(0, 100), Ownership::copy, on_cpu());
  int copies = 0;  // each in a call that has its turn
  const Resources resources = on_cpu().with_progress([&](const Progress& progress) {
    if (progress.stage != "copy") return;
    ++copies;
    EXPECT_EQ(index.size(), 100);
    EXPECT_EQ(index.search(base.view().slice(7, 1), {.k = 1}, on_cpu()).ids()[0], 7);
    try {
      index.add(base.view().slice(0, 5), Ownership::copy, on_cpu());
      ADD_FAILURE() << "an add inside an add";
    } catch (const InvalidState& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("search it only"));
    }
  });
  index.add(base.view().slice(100, 300), Ownership::copy, resources);
  EXPECT_GE(copies, 1);
  EXPECT_EQ(index.size(), 400);
  expect_searches(index, make_floats(Shape::gaussian, 20, 16, 3), base, 7, on_cpu());
}

TEST(Flat, GrowsFromManyThreads) {
  const auto base = make_floats(Shape::gaussian, 400, 16, 1);
  Index index("Flat");
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&] {
      const Resources own = on_cpu();
      for (int i = 0; i < 20; ++i) index.add(base.view().slice(0, 10), Ownership::copy, own);
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(index.size(), 800);
}

TEST(Flat, IsSearchedByManyThreadsWhileItGrows) {
  const Resources resources = on_cpu();
  const auto base = make_floats(Shape::gaussian, 2000, 16, 1);
  const auto queries = make_floats(Shape::gaussian, 8, 16, 2);
  Index index("Flat");
  index.add(base.view().slice(0, 1000), Ownership::copy, resources);
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, copy = index] {
      do {
        const int64_t before = copy.size();
        const Neighbors found = copy.search(queries.view(), {.k = 5}, resources);
        for (int64_t i = 0; i < 40; ++i) {
          EXPECT_GE(found.ids()[i], 0);
          EXPECT_LT(found.ids()[i], copy.size());
        }
        EXPECT_GE(copy.size(), before);
      } while (!done);
    });
  }
  for (int64_t at = 1000; at < 2000; at += 50) index.add(base.view().slice(at, 50), Ownership::copy, resources);
  done = true;
  for (std::thread& reader : readers) reader.join();
  expect_searches(index, queries, base, 5, resources);
}

}  // namespace
}  // namespace kith
