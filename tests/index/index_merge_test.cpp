// Two indexes become one that is the same, search for search, as one that was given all vectors; ids stay apart or are
// refused; and to() gives an index that goes on by itself.
#include <kith/error.hpp>
#include <kith/index.hpp>

#include "index/index_check.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;
using testing::expect_refusal;

constexpr int64_t kMergeRows = 900;
constexpr int64_t kMergeCols = 12;

class MergedKinds : public ::testing::TestWithParam<const char*> {
 protected:
  Index trained() const {
    Index index(GetParam(), {.metric = Metric::l2, .seed = 3});
    index.train(base_.view(), on_cpu());
    return index;
  }
  const reference::Matrix<float> base_ = make_floats(Shape::gaussian, kMergeRows, kMergeCols, 1);
  const reference::Matrix<float> queries_ = make_floats(Shape::gaussian, 13, kMergeCols, 2);
};

void add(Index& index, const MatrixView& rows, const std::vector<int64_t>& ids) {
  index.add(rows, view(ids), Ownership::copy, on_cpu());
}

TEST_P(MergedKinds, AnIndexOfTwoIsThatOfAllVectors) {
  const Index empty = trained();
  Index whole = empty.to(Device::automatic());
  Index first = empty.to(Device::automatic());
  Index second = empty.to(Device::automatic());
  std::vector<int64_t> ids = numbers(kMergeRows, 1000);
  std::reverse(ids.begin(), ids.end());
  for (int64_t at = 0; at < kMergeRows; at += 150) {
    const std::vector<int64_t> some(ids.begin() + at, ids.begin() + at + 150);
    add(whole, base_.view().slice(at, 150), some);
    add(at < 600 ? first : second, base_.view().slice(at, 150), some);
  }
  first.merge(second, {}, on_cpu());
  EXPECT_EQ(empty.size(), 0);
  EXPECT_EQ(second.size(), 300);
  ASSERT_EQ(first.size(), kMergeRows);
  for (const int64_t probes : {int64_t{2}, kAll}) {
    const SearchParams params = taken_by(first, {.k = 20, .probes = probes});
    expect_same(first.search(queries_.view(), params, on_cpu()), whole.search(queries_.view(), params, on_cpu()));
  }
  EXPECT_EQ(reconstructed(first, ids), reconstructed(whole, ids));
  const testing::TemporaryDirectory directory;  // and so it is on disk
  first.save(directory.path("first"), on_cpu());
  whole.save(directory.path("whole"), on_cpu());
  EXPECT_TRUE(directory.read("first") == directory.read("whole"));
}

TEST_P(MergedKinds, IdsAreShiftedOnlyWhenAskedAndNeverRepeat) {
  const Index empty = trained();
  Index first = empty.to(Device::automatic());
  Index second = empty.to(Device::automatic());
  first.add(base_.view().slice(0, 500), Ownership::copy, on_cpu());
  second.add(base_.view().slice(500, 400), Ownership::copy, on_cpu());
  first.remove(view({499}), on_cpu());
  second.remove(view({0, 399}), on_cpu());
  expect_refusal<InvalidArgument>([&] { first.merge(second, {}, on_cpu()); }, "id 1 is in both indexes");
  EXPECT_EQ(first.size(), 499);
  first.merge(second, {.shift_ids = true}, on_cpu());
  ASSERT_EQ(first.size(), 499 + 398);
  // The other's id 1 is behind 499, which was given once and never is again.
  EXPECT_EQ(reconstructed(first, {501}), reconstructed(second, {1}));
  expect_refusal<InvalidArgument>([&] { reconstructed(first, {499}); }, "no vector with the id 499");
  expect_refusal<InvalidArgument>([&] { reconstructed(first, {500}); }, "no vector with the id 500");
  first.add(base_.view().slice(0, 1), Ownership::copy, on_cpu());
  EXPECT_EQ(reconstructed(first, {900}), reconstructed(first, {0}));  // 899 was the other's 399, which is gone too
}

TEST_P(MergedKinds, AnIndexMayBeMergedWithItselfAndWithNone) {
  Index index = trained();
  const Index none = index.to(Device::automatic());
  index.add(base_.view().slice(0, 100), Ownership::copy, on_cpu());
  index.merge(none, {}, on_cpu());
  EXPECT_EQ(index.size(), 100);
  expect_refusal<InvalidArgument>([&] { index.merge(index, {}, on_cpu()); }, "id 0 is in both indexes");
  index.merge(index, {.shift_ids = true}, on_cpu());
  ASSERT_EQ(index.size(), 200);
  EXPECT_EQ(reconstructed(index, numbers(100)), reconstructed(index, numbers(100, 100)));
  Index other = none.to(Device::automatic());
  other.merge(index, {}, on_cpu());
  expect_same(other.search(queries_.view(), {.k = 5}, on_cpu()), index.search(queries_.view(), {.k = 5}, on_cpu()));
}

TEST_P(MergedKinds, WhatIsAddedToACopyIsNotSeenByTheOther) {
  Index index = trained();
  index.add(base_.view().slice(0, 300), Ownership::copy, on_cpu());
  Index copy = index.to(Device::cpu());
  EXPECT_EQ(copy.runs_on(), Device::cpu());
  EXPECT_EQ(index.runs_on(), Device::automatic());
  const Neighbors before = index.search(queries_.view(), {.k = 7}, on_cpu());
  expect_same(copy.search(queries_.view(), {.k = 7}), before);
  copy.add(base_.view().slice(300, 300), Ownership::copy, on_cpu());
  copy.remove(view({5}), on_cpu());
  EXPECT_EQ(index.size(), 300);
  expect_same(index.search(queries_.view(), {.k = 7}, on_cpu()), before);
  index.add(base_.view().slice(600, 1), Ownership::copy, on_cpu());
  EXPECT_EQ(copy.size(), 599);
  EXPECT_EQ(index.size(), 301);
}

INSTANTIATE_TEST_SUITE_P(IndexMerge, MergedKinds,
                         ::testing::Values("Flat", "IVF8,Flat", "IVF8,SQ8", "PQ3x4", "RR,IVF8,PQ3x4", "PCA6,Flat",
                                           "IVF8,PQ3x4,RFlat", "OPQ3,IVF8,PQ3x4,Refine(SQ8)"));

TEST(IndexMerge, OtherTrainingIsRefusedByWhatDiffers) {
  const auto base = make_floats(Shape::gaussian, 600, 8, 1);
  const auto others = make_floats(Shape::gaussian, 600, 8, 2);
  const auto made = [](const char* factory, const MatrixView& rows, Metric metric = Metric::l2) {
    Index index(factory, {.metric = metric});
    index.train(rows, on_cpu());
    index.add(rows, Ownership::copy, on_cpu());
    return index;
  };
  const auto refused = [&](Index a, const Index& b, const std::string& reason) {
    expect_refusal<InvalidArgument>([&] { a.merge(b, {.shift_ids = true}, on_cpu()); }, reason);
    EXPECT_EQ(a.size(), 600);
  };
  refused(made("IVF4,SQ8", base.view()), made("IVF4,SQ8", others.view()), "the centres of their lists differ");
  refused(made("IVF4,SQ8", base.view()), made("IVF5,SQ8", base.view()), "the centres of their lists differ");
  refused(made("SQ8", base.view()), made("SQ8", others.view()), "their codes differ");
  refused(made("SQ8", base.view()), made("SQ4", base.view()), "their codes differ");
  refused(made("SQ8", base.view()), made("Flat", base.view()), "no lists of codes");
  refused(made("Flat", base.view()), made("SQ8", base.view()), "something else than the vectors as they are");
  refused(made("RR,SQ8", base.view()), made("SQ8", base.view()), "their transforms differ");
  refused(made("PCA4,SQ8", base.view()), made("PCA4,SQ8", others.view()), "their transforms differ");
  refused(made("SQ8,RFlat", base.view()), made("SQ8", base.view()), "keeps no vectors to refine with");
  refused(made("SQ8,RFlat", base.view()), made("SQ8,Refine(SQfp16)", base.view()), "kept as other codes");
  refused(made("Flat", base.view()), made("Flat", base.view(), Metric::cosine), "searched by l2, the other by cosine");
  Index untrained("IVF4,SQ8");
  expect_refusal<InvalidState>([&] { made("IVF4,SQ8", base.view()).merge(untrained, {}, on_cpu()); },
                               "must be trained before it is merged");
  expect_refusal<InvalidState>([&] { untrained.merge(made("IVF4,SQ8", base.view()), {}, on_cpu()); },
                               "must be trained before another is merged with it");
}

TEST(IndexMerge, FlatIndexesShareBorrowedRowsAndRefuseOtherDtypes) {
  const auto floats = make_floats(Shape::gaussian, 300, 8, 1);
  const auto bytes = make_bytes(300, 8, 1);
  Index first("Flat");
  Index second("Flat");
  second.add(floats.view(), Ownership::borrow, on_cpu());
  first.merge(second, {}, on_cpu());
  EXPECT_EQ(first.size(), 300);
  const int64_t row_bytes = 300 * 8 * 4;
  EXPECT_LT(first.bytes().host, 2 * row_bytes + 300 * 64);  // a layout, no copy
  first.merge(second, {.shift_ids = true}, on_cpu());
  expect_exact(first, floats.view().slice(0, 9), numbers(600));
  Index third("Flat");
  third.add(bytes.view(), Ownership::copy, on_cpu());
  expect_refusal<InvalidArgument>([&] { first.merge(third, {.shift_ids = true}, on_cpu()); }, "f32 vectors");
  Index fourth("Flat");
  fourth.add(make_floats(Shape::gaussian, 3, 9, 1).view(), Ownership::copy, on_cpu());
  expect_refusal<InvalidArgument>([&] { first.merge(fourth, {.shift_ids = true}, on_cpu()); }, "of 9 columns");
}

TEST(IndexMerge, ManySmallOnesLeaveFewBlocks) {
  const auto base = make_floats(Shape::gaussian, 400, 4, 1);
  Index whole("Flat", {.prepare = false});
  for (int64_t i = 0; i < 400; ++i) {
    Index one("Flat", {.prepare = false});
    one.add(base.view().slice(i, 1), Ownership::copy, on_cpu());
    whole.merge(one, {.shift_ids = true}, on_cpu());
  }
  EXPECT_EQ(whole.bytes().host, 400 * 4 * 4);
  expect_exact(whole, base.view().slice(7, 5), numbers(400));
}

TEST(IndexMerge, ADeviceThatTheBuildLacksIsRefused) {
  if (built_with_cuda()) GTEST_SKIP();
  EXPECT_THROW((void)Index("Flat").to(Device::cuda(0)), Unsupported);
}

TEST(IndexMerge, ADeviceThatTheMachineLacksIsRefused) {
  if (!built_with_cuda()) GTEST_SKIP();
  EXPECT_THROW((void)Index("Flat").to(Device::cuda(99)), InvalidArgument);
}

}  // namespace
}  // namespace kith
