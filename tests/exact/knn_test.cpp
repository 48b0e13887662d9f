#include <kith/error.hpp>
#include <kith/knn.hpp>

#include "core/cpu_target.hpp"
#include "core/memory_budget.hpp"
#include "exact/exact_check.hpp"
#include "kernels/forced_target.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstring>
#include <thread>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

constexpr Metric kMetrics[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine};

TEST(Knn, EqualsTheReferenceOnEveryKindOfData) {
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(shape);
    for (const Metric metric : kMetrics) {
      SCOPED_TRACE(name_of(metric));
      const auto base = make_floats(shape, 700, 33, 1);
      check(make_floats(shape, 3, 33, 2), base, {7, metric});    // direct
      check(make_floats(shape, 30, 33, 2), base, {20, metric});  // product
    }
  }
}

TEST(Knn, EqualsTheReferenceForEveryShape) {
  for (const int64_t cols : {1, 2, 15, 16, 17, 100}) {
    for (const int64_t rows : {1, 2, 11, 12, 13, 47, 48, 49, 256, 257}) {
      for (const int64_t queries : {1, 5, 6, 25, 49}) {
        SCOPED_TRACE(::testing::Message() << queries << " queries, " << rows << " x " << cols);
        check(make_floats(Shape::gaussian, queries, cols, 5), make_floats(Shape::gaussian, rows, cols, 6),
              {10, Metric::l2});
      }
    }
  }
}

// Several blocks of queries, each by a screen where the instruction set has one.
TEST(Knn, EqualsTheReferenceForManyQueriesWithEveryTarget) {
  const auto queries = make_floats(Shape::gaussian, 600, 40, 5);
  check_with_every_target(queries, make_floats(Shape::gaussian, 2100, 40, 6), {3, Metric::l2});
}

TEST(Knn, EqualsTheReferenceForManyColumns) {
  for (const int64_t cols : {1025, 2049, 5000}) {
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1}) {
      check_with_every_target(make_floats(Shape::gaussian, 9, cols, 5),
                              make_floats(Shape::near_duplicates, 110, cols, 6), {10, metric});
    }
  }
}

TEST(Knn, TakesBytesAndMixedTypes) {
  for (const Metric metric : kMetrics) {
    for (const int64_t cols : {3, 64, 785}) {
      for (const int64_t queries : {2, 20}) {
        check(make_bytes(queries, cols, 1), make_bytes(300, cols, 2), {10, metric});
        check(make_bytes(queries, cols, 1, 2), make_bytes(300, cols, 2, 2), {50, metric});  // many ties
        check(make_floats(Shape::gaussian, queries, cols, 1), make_bytes(300, cols, 2), {10, metric});
        check(make_bytes(queries, cols, 1), make_floats(Shape::gaussian, 300, cols, 2), {10, metric});
      }
    }
  }
}

TEST(Knn, EqualsTheReferenceWithEveryInstructionSet) {
  const auto check = [](const auto& queries, const auto& base, const KnnParams& params) {
    check_with_every_target(queries, base, params);
  };
  for (const Metric metric : kMetrics) {
    SCOPED_TRACE(name_of(metric));
    check(make_floats(Shape::gaussian, 30, 40, 1), make_floats(Shape::gaussian, 500, 40, 2), {10, metric});
    check(make_floats(Shape::far_mean, 2, 40, 1), make_floats(Shape::far_mean, 500, 40, 2), {10, metric});
    check(make_bytes(30, 40, 1), make_bytes(500, 40, 2), {10, metric});
    check(make_bytes(70, 129, 1), make_bytes(1000, 129, 2), {33, metric});
    check(make_bytes(40, 16, 1, 1), make_bytes(5000, 16, 2, 1), {20, metric});  // nearly all are ties
    check(make_bytes(40, 16, 1, 0), make_bytes(5000, 16, 2, 0), {20, metric});  // all are
    for (const Shape shape : reference::kAllShapes) {
      SCOPED_TRACE(shape);
      check(make_floats(shape, 40, 70, 1), make_floats(shape, 1000, 70, 2), {10, metric});
    }
  }
}

TEST(Knn, EqualsTheReferenceWhereQueriesAndBaseAreOfDifferentKinds) {
  for (const Shape queries : reference::kAllShapes) {
    for (const Shape rows : reference::kAllShapes) {
      SCOPED_TRACE(::testing::Message() << queries << " in " << rows);
      for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
        const auto base = make_floats(rows, 200, 12, 4);
        check(make_floats(queries, 2, 12, 3), base, {3, metric});
        check(make_floats(queries, 8, 12, 3), base, {3, metric});
      }
    }
  }
}

TEST(Knn, EqualDistancesComeInTheOrderOfTheRows) {
  const auto base = make_floats(Shape::near_duplicates, 3000, 8, 1);
  const Neighbors found = knn(base.view().slice(0, 8), base.view(), {3000, Metric::l2}, on_cpu());
  int ties = 0;
  for (int64_t q = 0; q < 8; ++q) {
    for (int64_t i = 1; i < 3000; ++i) {
      ASSERT_LE(found.distances(q)[i - 1], found.distances(q)[i]);
      if (found.distances(q)[i - 1] == found.distances(q)[i]) {
        ++ties;
        ASSERT_LT(found.ids(q)[i - 1], found.ids(q)[i]);
      }
    }
  }
  EXPECT_GT(ties, 0);
}

// Rows that equal the k-th are left out before their keys are computed; those that only nearly do are not.
TEST(Knn, ManyRowsThatAreTheNearest) {
  for (const int64_t cols : {1, 3, 8, 24, 100}) {
    auto base = make_floats(Shape::gaussian, 3000, cols, 1);
    auto queries = make_floats(Shape::gaussian, 20, cols, 2);
    for (float& value : queries.values) value = std::fabs(value) + 0.1f;
    for (int64_t row = 0; row < 3000; ++row) {
      if (row % 3 == 1) std::fill_n(base.row(row), cols, 4.0f);
      if (row % 50 == 7) base.row(row)[cols - 1] = std::nextafter(4.0f, 9.0f);  // a little nearer by inner product
    }
    for (const Metric metric : kMetrics) {
      for (const int64_t some : {1, 2, 5, 20}) {
        SCOPED_TRACE(::testing::Message() << some << " queries of " << cols << " columns, " << name_of(metric));
        reference::Matrix<float> first(some, cols);
        std::copy_n(queries.values.begin(), first.values.size(), first.values.begin());
        check(first, base, {10, metric});
        std::copy_n(base.row(1), cols, first.row(0));  // one of the equal rows
        check(first, base, {45, metric});
      }
    }
  }
}

TEST(Knn, RowsWhoseDifferenceOverflowsAreFinite) {
  reference::Matrix<float> base(1024, 32);
  std::fill(base.values.begin(), base.values.end(), 3e38f);
  for (int64_t c = 0; c < 32; ++c) base.row(777)[c] = -3e38f;
  for (const int64_t queries : {int64_t{2}, int64_t{64}}) {
    for (const Metric metric : kMetrics) {
      reference::Matrix<float> some(queries, 32);
      std::copy_n(base.values.begin(), some.values.size(), some.values.begin());
      check(some, base, {3, metric});
    }
  }
}

TEST(Knn, DoesNotDependOnTheCallersFloatMode) {
  const auto queries = make_floats(Shape::tiny, 30, 16, 1);
  const auto base = make_floats(Shape::tiny, 500, 16, 2);
  const reference::Result truth = reference::knn(queries, base, {5, Metric::inner_product});
  std::fesetround(FE_UPWARD);
  const Neighbors found = knn(queries.view(), base.view(), {5, Metric::inner_product}, on_cpu(1));
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  expect_same(found, truth);
}

TEST(Knn, LargeAndSmallDistancesAreNotLostInTheirSquares) {
  reference::Matrix<float> query(1, 2), base(3, 2);
  const float values[] = {3e19f, 0, 2e19f, 0, 2.5e19f, 1e19f};
  std::copy(std::begin(values), std::end(values), base.values.begin());
  const Neighbors large = knn(query.view(), base.view(), {3, Metric::l2}, on_cpu());
  EXPECT_THAT(std::vector<int64_t>(large.ids(), large.ids() + 3), ::testing::ElementsAre(1, 2, 0));
  EXPECT_FLOAT_EQ(large.distances()[0], 2e19f);
  for (float& value : base.values) value *= 1e-42f;
  const Neighbors small = knn(query.view(), base.view(), {3, Metric::l2}, on_cpu());
  EXPECT_THAT(std::vector<int64_t>(small.ids(), small.ids() + 3), ::testing::ElementsAre(1, 2, 0));
  EXPECT_FLOAT_EQ(small.distances()[0], base.row(1)[0]);
}

RC_GTEST_PROP(Knn, EqualsTheReferenceForAnyProblem, (uint64_t seed)) {
  const auto shape =
      *rc::gen::elementOf(std::vector<Shape>(std::begin(reference::kAllShapes), std::end(reference::kAllShapes)));
  const auto metric = *rc::gen::element(Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine);
  const auto rows = *rc::gen::inRange<int64_t>(1, 400);
  const auto cols = *rc::gen::inRange<int64_t>(1, 40);
  const auto queries = *rc::gen::inRange<int64_t>(1, 20);
  const auto k = *rc::gen::inRange<int64_t>(1, 500);
  const auto threads = *rc::gen::inRange(1, 5);
  const auto q = make_floats(shape, queries, cols, seed);
  const auto x = make_floats(shape, rows, cols, seed + 1);
  const Neighbors found = knn(q.view(), x.view(), {k, metric}, on_cpu(threads));
  const reference::Result truth = reference::knn(q, x, {k, metric});
  RC_ASSERT(std::memcmp(found.ids(), truth.ids.data(), truth.ids.size() * sizeof(int64_t)) == 0);
  RC_ASSERT(std::memcmp(found.distances(), truth.distances.data(), truth.distances.size() * sizeof(float)) == 0);
}

TEST(Knn, IsWithinThePromisedDistanceOfTheFloat64Truth) {
  for (const Shape shape :
       {Shape::gaussian, Shape::far_mean, Shape::near_duplicates, Shape::huge, Shape::tiny, Shape::mixed_norms}) {
    const auto queries = make_floats(shape, 8, 128, 1);
    const auto base = make_floats(shape, 400, 128, 2);
    for (const Metric metric : kMetrics) {
      SCOPED_TRACE(::testing::Message() << shape << " " << name_of(metric));
      const Neighbors found = knn(queries.view(), base.view(), {20, metric}, on_cpu());
      for (int64_t q = 0; q < found.queries(); ++q) {
        for (int64_t i = 0; i < found.k(); ++i) {
          const float* x = base.row(found.ids(q)[i]);
          const double truth = reference::distance(metric, queries.row(q), x, 128);
          if (found.distances(q)[i] == INFINITY) {
            EXPECT_GT(truth, 3.4e38);
            continue;
          }
          const double norms = std::sqrt(canonical_squared_norm(queries.row(q), 128) * canonical_squared_norm(x, 128));
          const double smallest = 0x1p-149;  // of what an f32 can hold
          const double most = metric == Metric::inner_product ? 1e-6 * norms + smallest
                              : metric == Metric::cosine      ? 1e-7 + 1e-5 * truth
                                                              : 1e-5 * truth + smallest;
          EXPECT_NEAR(found.distances(q)[i], truth, most);
        }
      }
    }
  }
}

TEST(Knn, GivesTheSameBytesForAnyThreadsAndMemory) {
  const auto queries = make_floats(Shape::near_duplicates, 60, 24, 1);
  const auto base = make_floats(Shape::near_duplicates, 20000, 24, 2);
  for (const int64_t k : {1, 30}) {
    const Neighbors whole = knn(queries.view(), base.view(), {k, Metric::l2}, on_cpu(1));
    for (const int threads : {2, 3, 8}) {
      for (const int64_t limit : {kNoLimit, int64_t{400000}}) {
        const Neighbors part = knn(queries.view(), base.view(), {k, Metric::l2}, on_cpu(threads, limit));
        EXPECT_EQ(std::memcmp(whole.ids(), part.ids(), static_cast<size_t>(60 * k) * sizeof(int64_t)), 0);
        EXPECT_EQ(std::memcmp(whole.distances(), part.distances(), static_cast<size_t>(60 * k) * sizeof(float)), 0);
      }
    }
  }
}

TEST(Knn, PadsWhereThereAreTooFewRows) {
  const auto queries = make_floats(Shape::gaussian, 2, 4, 1);
  const auto base = make_floats(Shape::gaussian, 3, 4, 2);
  for (const Metric metric : kMetrics) {
    const Neighbors found = knn(queries.view(), base.view(), {5, metric}, on_cpu());
    const float nothing = metric == Metric::inner_product ? -INFINITY : INFINITY;
    for (int64_t q = 0; q < 2; ++q) {
      EXPECT_GE(found.ids(q)[2], 0);
      EXPECT_EQ(found.ids(q)[3], -1);
      EXPECT_EQ(found.distances(q)[4], nothing);
    }
  }
  const MatrixView none(static_cast<const float*>(nullptr), 0, 4);
  EXPECT_EQ(knn(queries.view(), none, {2, Metric::l2}, on_cpu()).ids(1)[1], -1);
  EXPECT_EQ(knn(none, base.view(), {2, Metric::l2}, on_cpu()).queries(), 0);
}

TEST(Knn, ARealNeighbourAtInfinityComesBeforePadding) {
  reference::Matrix<float> query(1, 1), base(1, 1);
  query.row(0)[0] = 3e38f;
  base.row(0)[0] = -3e38f;
  const Neighbors found = knn(query.view(), base.view(), {2, Metric::sqeuclidean}, on_cpu());
  EXPECT_EQ(found.ids()[0], 0);
  EXPECT_EQ(found.distances()[0], INFINITY);
  EXPECT_EQ(found.ids()[1], -1);
}

TEST(Knn, RowsMayBeApart) {
  const auto wide = make_floats(Shape::gaussian, 500, 20, 3);
  reference::Matrix<float> narrow(500, 9);
  for (int64_t i = 0; i < 500; ++i) std::copy_n(wide.row(i), 9, narrow.row(i));
  const MatrixView strided(wide.values.data(), DType::f32, {500, 9, 20});
  for (const int64_t queries : {3, 40}) {
    expect_same(knn(strided.slice(0, queries), strided, {5, Metric::cosine}, on_cpu()),
                reference::knn(
                    [&] {
                      reference::Matrix<float> q(queries, 9);
                      std::copy_n(narrow.values.begin(), queries * 9, q.values.begin());
                      return q;
                    }(),
                    narrow, {5, Metric::cosine}));
  }
}

TEST(Knn, NamesTheFirstRowThatIsNotFinite) {
  for (const int64_t queries : {2, 30}) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      for (const Metric metric : kMetrics) {
        const auto good = make_floats(Shape::gaussian, queries, 8, 1);
        auto base = make_floats(Shape::gaussian, 9000, 8, 2);
        base.row(8123)[7] = bad;
        base.row(4777)[0] = bad;
        try {
          knn(good.view(), base.view(), {3, metric}, on_cpu());
          FAIL() << "nothing was thrown";
        } catch (const InvalidArgument& error) {
          EXPECT_THAT(error.what(), ::testing::HasSubstr("base row 4777 "));
        }
        auto broken = good;
        broken.row(1)[3] = bad;
        try {
          knn(broken.view(), make_floats(Shape::gaussian, 10, 8, 2).view(), {3, metric}, on_cpu());
          FAIL() << "nothing was thrown";
        } catch (const InvalidArgument& error) {
          EXPECT_THAT(error.what(), ::testing::HasSubstr("query row 1 "));
        }
      }
    }
  }
}

TEST(Knn, WithoutTheCheckNanComesLast) {
  for (const int64_t queries : {2, 30}) {
    for (const Metric metric : kMetrics) {
      const auto good = make_floats(Shape::gaussian, queries, 8, 1);
      auto base = make_floats(Shape::gaussian, 300, 8, 2);
      for (int64_t i = 0; i < 300; i += 7) base.row(i)[2] = NAN;
      check(good, base, {300, metric, false});
      check(good, base, {20, metric, false});
      auto sparse = make_floats(Shape::gaussian, 5000, 8, 3);  // few hits for each panel, and a NaN in each
      for (int64_t i = 17; i < 5000; i += 48) sparse.row(i)[2] = NAN;
      check(good, sparse, {1, metric, false});
    }
  }
}

TEST(Knn, RefusesWhatItCannotDo) {
  const auto queries = make_floats(Shape::gaussian, 2, 4, 1);
  const auto base = make_floats(Shape::gaussian, 3, 5, 2);
  EXPECT_THROW(knn(queries.view(), base.view(), {1, Metric::l2}, on_cpu()), InvalidArgument);
  EXPECT_THROW(knn(queries.view(), queries.view(), {0, Metric::l2}, on_cpu()), InvalidArgument);
  EXPECT_THROW(knn(queries.view(), queries.view(), {-3, Metric::l2}, on_cpu()), InvalidArgument);
  EXPECT_THROW(knn(queries.view(), queries.view(), {1, static_cast<Metric>(77)}, on_cpu()), InvalidArgument);
  EXPECT_THROW(knn(queries.view(), queries.view(), {1, Metric::hamming}, on_cpu()), InvalidArgument);
  const MatrixView device(queries.values.data(), DType::f32, {2, 4, 4}, MemorySpace::cuda(0));
  EXPECT_THROW(knn(queries.view(), device, {1, Metric::l2}, on_cpu()), Unsupported);
  int64_t ids[2];
  float distances[2];
  EXPECT_THROW(knn(queries.view(), queries.view(), {ids, distances, 2, 2}, {1, Metric::l2}, on_cpu()), InvalidArgument);
  EXPECT_THROW(knn(queries.view(), queries.view(), {nullptr, nullptr, 2, 1}, {1, Metric::l2}, on_cpu()),
               InvalidArgument);
  EXPECT_THROW(knn(queries.view(), queries.view(), {1, Metric::l2}, on_cpu().with_device(Device::cuda(99))), Error);
}

TEST(Knn, TooSmallALimitSaysWhatIsNeededAndThatMuchIsEnough) {
  const auto queries = make_floats(Shape::gaussian, 40, 16, 1);
  const auto base = make_floats(Shape::gaussian, 2000, 16, 2);
  std::vector<int64_t> ids(400);
  std::vector<float> distances(400);
  const NeighborsView out{ids.data(), distances.data(), 40, 10};
  int64_t needed = 0;
  try {
    knn(queries.view(), base.view(), out, {10, Metric::l2}, on_cpu(2, 1000));
    FAIL();
  } catch (const OutOfMemory& error) {
    needed = error.bytes_needed();
  }
  const Resources enough = on_cpu(2, needed);
  knn(queries.view(), base.view(), out, {10, Metric::l2}, enough);
  EXPECT_EQ(enough.host_memory()->used(), 0);
  EXPECT_EQ(ids, reference::knn(queries, base, {10, Metric::l2}).ids);
}

// The limit that an OutOfMemory names for `call`, which gets a limit.
template <typename Call>
int64_t named_limit(const Call& call) {
  try {
    call(1000);
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(error.bytes_needed()) + " bytes"), std::string::npos)
        << error.what();
    return error.bytes_needed();
  }
  ADD_FAILURE() << "a limit of 1000 bytes was enough";
  return 0;
}

TEST(Knn, TheNamedLimitIsThatOfTheWholeSearch) {
  const auto queries = make_floats(Shape::gaussian, 400, 16, 1);
  const auto base = make_floats(Shape::gaussian, 5000, 16, 2);
  std::vector<uint8_t> keep(5000, 1);
  for (size_t i = 0; i < keep.size(); i += 3) keep[i] = 0;
  const RowFilter mask = RowFilter::mask(keep.data(), 5000);
  const RowFilter none;
  for (const RowFilter* filter : {&none, &mask}) {
    const auto search = [&](int64_t limit) {
      return knn(queries.view(), base.view(), {.k = 10, .filter = *filter}, on_cpu(2, limit));
    };
    const int64_t limit = named_limit(search);
    EXPECT_EQ(search(limit).k(), 10);
    EXPECT_THROW(search(limit / 2), OutOfMemory);
  }
  // What others hold counts too.
  const Resources shared = on_cpu(2, 200'000);
  const HostBuffer held(150'000, "another's", shared);
  try {
    knn(queries.view(), base.view(), {.k = 10}, shared);
    FAIL();
  } catch (const OutOfMemory& error) {
    const Resources enough = on_cpu(2, error.bytes_needed());
    const HostBuffer again(150'000, "another's", enough);
    knn(queries.view(), base.view(), {.k = 10}, enough);
  }
}

TEST(Knn, CanBeCancelledAndReports) {
  const auto queries = make_floats(Shape::gaussian, 200, 64, 1);
  const auto base = make_floats(Shape::gaussian, 50000, 64, 2);
  int reports = 0;
  const Resources reporting = on_cpu().with_progress([&](const Progress& progress) {
    ++reports;
    EXPECT_LE(progress.done, progress.total);
  });
  knn(queries.view(), base.view(), {1, Metric::l2}, reporting);
  EXPECT_GE(reports, 1);
  const CancelToken token;
  token.request();
  EXPECT_THROW(knn(queries.view(), base.view(), {1, Metric::l2}, on_cpu().with_cancel(token)), Cancelled);
}

TEST(Knn, IsCancelledInTheMiddle) {
  const auto base = make_floats(Shape::gaussian, 60000, 128, 2);
  for (const int64_t queries : {int64_t{5}, int64_t{2000}}) {
    const CancelToken token;
    int64_t seen = 0;
    int64_t total = 0;
    const Resources resources = on_cpu().with_cancel(token).with_progress([&](const Progress& progress) {
      seen = progress.done;
      total = progress.total;
      token.request();
    });
    // Over and over, so that even the fastest machine comes to its first report.
    EXPECT_THROW(for (int i = 0; i < 1000; ++i)
                     knn(base.view().slice(0, queries), base.view(), {1, Metric::l2}, resources),
                 Cancelled);
    EXPECT_LE(seen, total);
    EXPECT_EQ(resources.host_memory()->used(), 0);
  }
}

TEST(Knn, CallsAtTheSameTimeShareOneLimit) {
  const auto queries = make_floats(Shape::gaussian, 40, 16, 1);
  const auto base = make_floats(Shape::gaussian, 6000, 16, 2);
  const reference::Result truth = reference::knn(queries, base, {10, Metric::l2});
  const Resources resources = on_cpu(2, 700000);
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 10; ++i) expect_same(knn(queries.view(), base.view(), {10, Metric::l2}, resources), truth);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(resources.host_memory()->used(), 0);
}

TEST(Knn, ABaseOfFewerThanKRowsIsWarnedOfOnce) {
  const float base[] = {0, 1, 2};
  const float queries[] = {0, 1, 2, 3};
  std::vector<std::string> warnings;
  const Resources resources = Resources().with_log([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) warnings.emplace_back(text);
  });
  knn({queries, 4, 1}, {base, 3, 1}, {.k = 3}, resources);
  EXPECT_THAT(warnings, ::testing::IsEmpty());
  knn({queries, 4, 1}, {base, 3, 1}, {.k = 4}, resources);
  EXPECT_THAT(warnings, ::testing::ElementsAre(::testing::AllOf(::testing::HasSubstr("k = 4, but the base has 3 rows"),
                                                            ::testing::HasSubstr("swapped"))));
}

}  // namespace
}  // namespace kith
