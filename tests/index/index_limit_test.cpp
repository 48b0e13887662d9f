// Memory limits of indexes: an OutOfMemory names a limit that does, whatever the kind; under it a search gives the
// bytes of one without a limit; what an index holds is counted.
#include <kith/error.hpp>
#include <kith/index.hpp>
#include <kith/vector_file.hpp>

#include "core/memory_budget.hpp"
#include "index/index_check.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"
#include "reference/sanitized.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

const int64_t kLimitRows = reference::fewer_if_sanitized(3000, 1000);
constexpr int64_t kLimitCols = 24;

class LimitedKinds : public ::testing::TestWithParam<const char*> {
 protected:
  LimitedKinds() : index_(GetParam(), {.metric = Metric::l2, .prepare = false}) {
    index_.train(base_.view(), on_cpu());
    index_.add(base_.view(), Ownership::copy, on_cpu());
  }

  // Follows the error's advice once.
  void expect_advice_to_do(const MatrixView& queries, const SearchParams& given) {
    const SearchParams params = taken_by(index_, given);
    const Neighbors free = index_.search(queries, params, on_cpu());
    const auto error = testing::thrown<OutOfMemory>([&] { (void)index_.search(queries, params, on_cpu(3000)); });
    ASSERT_TRUE(error);
    EXPECT_THAT(error->what(), ::testing::HasSubstr("would do")) << GetParam();
    const int64_t limit = error->bytes_needed();
    EXPECT_GT(limit, 3000);
    expect_same(index_.search(queries, params, on_cpu(limit)), free);
    EXPECT_LT(limit, 16 << 20) << "far more than it takes";
  }

  const reference::Matrix<float> base_ = make_floats(Shape::gaussian, kLimitRows, kLimitCols, 1);
  const reference::Matrix<float> queries_ = make_floats(Shape::gaussian, 300, kLimitCols, 2);
  Index index_;
};

TEST_P(LimitedKinds, TheNamedLimitDoes) {
  const auto bytes = reference::make_bytes(40, kLimitCols, 3);
  std::vector<uint8_t> mask(kLimitRows, 1);
  for (size_t i = 0; i < mask.size(); i += 2) mask[i] = 0;
  expect_advice_to_do(queries_.view(), {.k = 10});
  expect_advice_to_do(queries_.view(), {.k = 500, .probes = 1});  // more lists are looked at, until there are enough
  expect_advice_to_do(queries_.view().slice(0, 1), {.k = 1, .probes = kAll});
  expect_advice_to_do(queries_.view(), {.k = 10, .filter = RowFilter::mask(mask.data(), kLimitRows)});
  if (std::string(GetParam()).find("Flat") != 0) expect_advice_to_do(bytes.view(), {.k = 10});
}

TEST_P(LimitedKinds, AListOfIdsCountsToo) {
  std::vector<int64_t> odd;
  for (int64_t i = 1; i < kLimitRows; i += 2) odd.push_back(i);
  index_.remove(view({0}), on_cpu());
  expect_advice_to_do(queries_.view(), {.k = 10, .filter = RowFilter::rows(odd.data(), kLimitRows / 2)});
  // So do marks of removed rows, and a mask that is spread over them.
  expect_advice_to_do(queries_.view(), {.k = 10});
  const std::vector<uint8_t> mask(kLimitRows - 1, 1);
  expect_advice_to_do(queries_.view(), {.k = 10, .filter = RowFilter::mask(mask.data(), kLimitRows - 1)});
}

TEST_P(LimitedKinds, ARangeUnderALimitIsTheSame) {
  const float radius =
      index_.search(queries_.view(), taken_by(index_, {.k = 40, .probes = kAll}), on_cpu()).distances(0)[39];
  const RangeSearchParams params = range_taken_by(index_, {.radius = radius, .probes = kAll});
  const RangeNeighbors free = index_.range_search(queries_.view(), params, on_cpu());
  const RangeNeighbors found = index_.range_search(queries_.view(), params, on_cpu(24 << 20));
  ASSERT_EQ(found.size(), free.size());
  ASSERT_GT(free.size(), 300);
  EXPECT_EQ(std::memcmp(found.offsets(), free.offsets(), 301 * sizeof(int64_t)), 0);
  EXPECT_EQ(std::memcmp(found.ids(), free.ids(), static_cast<size_t>(free.size()) * sizeof(int64_t)), 0);
  EXPECT_EQ(std::memcmp(found.distances(), free.distances(), static_cast<size_t>(free.size()) * sizeof(float)), 0);
}

TEST_P(LimitedKinds, WhatALoadedIndexHoldsIsCounted) {
  const testing::TemporaryDirectory directory;
  index_.save(directory.path("x"), on_cpu());
  const Resources resources = on_cpu(1 << 30);
  {
    const Index loaded = Index::load(directory.path("x"), resources);
    const int64_t held = loaded.bytes().host;
    EXPECT_GE(resources.host_memory()->used(), held - held / 64) << "of " << held;
    EXPECT_LE(resources.host_memory()->used(), held + held / 16 + 65536);
  }
  EXPECT_EQ(resources.host_memory()->used(), 0);
}

INSTANTIATE_TEST_SUITE_P(IndexLimit, LimitedKinds,
                         ::testing::Values("Flat", "IVF30,Flat", "IVF30,SQ8", "SQ6", "PQ4", "IVF30,PQ4",
                                           "OPQ4,IVF30,PQ4", "PCA8,L2norm,Flat", "IVF30,PQ4,RFlat",
                                           "PCA12,IVF30,PQ4x4,Refine(SQ8)"));

// The rows of a range do not fit as transformed queries all at once.
TEST(IndexLimit, TransformedQueriesOfARangeComeInPieces) {
  const auto base = make_floats(Shape::gaussian, 500, 128, 1);
  const auto queries = make_floats(Shape::gaussian, 16000, 128, 2);  // 8 MB
  Index index("RR,Flat", {.prepare = false});
  index.train(base.view(), on_cpu());
  index.add(base.view(), Ownership::copy, on_cpu());
  const float radius = index.search(queries.view().slice(0, 1), {.k = 4}, on_cpu()).distances()[3];
  const RangeNeighbors free = index.range_search(queries.view(), {.radius = radius}, on_cpu());
  const RangeNeighbors found = index.range_search(queries.view(), {.radius = radius}, on_cpu(15 << 19));
  ASSERT_GT(free.size(), 100);
  ASSERT_EQ(found.size(), free.size());
  EXPECT_EQ(std::memcmp(found.ids(), free.ids(), static_cast<size_t>(free.size()) * sizeof(int64_t)), 0);
}

TEST(IndexLimit, TrainingUnderALimitGivesTheSameIndex) {
  const auto rows = make_floats(Shape::gaussian, 12000, 32, 5);  // 1.5 MB
  const testing::TemporaryDirectory directory;
  write_vectors(directory.path("rows.fbin"), rows.view());
  const VectorFile file(directory.path("rows.fbin"));
  int64_t number = 0;
  for (const char* const factory :
       {"IVF40,PQ8x6", "IVF40,SQ8", "IVF40,Flat", "PQ4x7", "PCA16,IVF40,PQ4x4,Refine(SQ8)"}) {
    for (const Metric metric : {Metric::l2, Metric::cosine}) {
      if (reference::left_to_plain(number++, 3)) continue;
      SCOPED_TRACE(factory);
      Index free(factory, {.metric = metric, .seed = 2});
      free.train(rows.view(), on_cpu());
      Index limited(factory, {.metric = metric, .seed = 2});
      const bool turns = std::string_view(factory).starts_with("PCA");  // products of matrices take more
      limited.train(file, on_cpu(turns ? 9 << 20 : 3 << 20));
      free.save(directory.path("free"), on_cpu());
      limited.save(directory.path("limited"), on_cpu());
      EXPECT_TRUE(directory.read("free") == directory.read("limited"));
    }
  }
}

// Does the work under a limit that is too small, which must name a larger one, and under that one.
template <typename Work>
void expect_one_advice(int64_t too_small, int64_t most, const Work& work) {
  const auto error = testing::thrown<OutOfMemory>([&] { work(on_cpu(too_small)); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), ::testing::HasSubstr("would do"));
  EXPECT_GT(error->bytes_needed(), too_small);
  EXPECT_LT(error->bytes_needed(), most) << "far more than it takes";
  work(on_cpu(error->bytes_needed()));
}

TEST(IndexLimit, TooSmallALimitForTrainingIsNamed) {
  const int64_t kRows = reference::fewer_if_sanitized(20000, 6000);
  const auto rows = make_floats(Shape::gaussian, kRows, 32, 5);
  for (const char* const factory : {"IVF40,PQ8x6", "PQ16x6", "IVF40,SQ8"}) {
    SCOPED_TRACE(factory);
    Index index(factory);
    expect_one_advice(50000, kRows * 32 * 4, [&](const Resources& resources) { index.train(rows.view(), resources); });
  }
  const auto few = make_floats(Shape::gaussian, reference::fewer_if_sanitized(3000, 700), 16, 6);
  for (const char* const factory :
       {"IVF8,LSQ2x5_Nqint8", "IVF8,LSQ2x5_Ncqint8", "IVF8,RQ2x5_Nqint8", "LSQ2x5_Nqint8"}) {
    SCOPED_TRACE(factory);
    Index index(factory);
    expect_one_advice(20000, 16 << 20, [&](const Resources& resources) { index.train(few.view(), resources); });
  }
}

// Every kind, one call after the other, each under a limit of its own.
TEST(IndexLimit, TooSmallALimitForTheOthersIsNamed) {
  const int64_t kFirst = reference::fewer_if_sanitized(4000, 1000);
  const int64_t kRows = kFirst + kFirst / 2;
  const auto rows = make_floats(Shape::gaussian, kRows, 24, 7);
  const testing::TemporaryDirectory directory;
  write_vectors(directory.path("rows.fbin"), rows.view());
  const VectorFile file(directory.path("rows.fbin"));
  std::vector<int64_t> ids(kRows);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(7 * (kRows - i));
  const VectorView<const int64_t> own{ids.data(), kRows, {}};
  constexpr int64_t kMost = 24 << 20;
  for (const char* const factory : {"Flat", "IVF40,Flat", "IVF40,SQ8", "IVF40,PQ8x6", "PQ8", "OPQ8,IVF40,PQ8",
                                    "PCA16,IVF40,SQ8,RFlat", "IVF16,RQ2x5_Nqint8", "Flat,RFlat"}) {
    SCOPED_TRACE(factory);
    Index index(factory, {.metric = Metric::l2, .prepare = false});
    index.train(rows.view(), on_cpu());
    Index by_file(factory, {.metric = Metric::l2, .prepare = false});
    by_file.train(rows.view(), on_cpu());
    expect_one_advice(4000, kMost, [&](const Resources& resources) {
      index.add(rows.view().slice(0, kFirst), {ids.data(), kFirst, {}}, Ownership::copy, resources);
    });
    expect_one_advice(4000, kMost, [&](const Resources& resources) {  // behind others, merged with them
      index.add(rows.view().slice(kFirst, kRows - kFirst), {ids.data() + kFirst, kRows - kFirst, {}}, Ownership::copy,
                resources);
    });
    expect_one_advice(4000, kMost, [&](const Resources& resources) { by_file.add(file, own, resources); });
    std::vector<float> out(kRows * 24);
    expect_one_advice(3000, kMost, [&](const Resources& resources) {
      index.reconstruct(own, MutableMatrixView(out.data(), kRows, 24), resources);
    });
    expect_one_advice(500, kMost, [&](const Resources& resources) { index.save(directory.path("saved"), resources); });
    expect_one_advice(4000, kMost, [&](const Resources& resources) {
      const Index loaded = Index::load(directory.path("saved"), resources);
      EXPECT_EQ(loaded.size(), kRows);
    });
    expect_one_advice(3000, 2 * kMost, [&](const Resources& resources) {
      (void)index.range_search(rows.view().slice(0, 20), {.radius = 3.0F}, resources);
    });
    expect_one_advice(100, kMost, [&](const Resources& resources) {
      EXPECT_EQ(index.remove({ids.data(), kFirst, {}}, resources), kFirst);
    });
  }
}

}  // namespace
}  // namespace kith
