// What the plan of the search of lists on a GPU chooses; no GPU is asked.
#include "cuda/searched_lists.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace kith {
namespace {

using namespace searched_lists;

IvfSearchPlan planned(const CodeFormat& format, int64_t queries, int64_t slots, int64_t lists, int64_t vectors,
                      ScanTerm term = ScanTerm::of_vector) {
  IvfSearchShape shape;
  shape.format = format;
  shape.queries = queries;
  shape.slots = slots;
  shape.k = 100;
  shape.lists = lists;
  shape.vectors = vectors;
  shape.multiprocessors = 132;
  shape.term = term;
  return plan_ivf_search(shape, int64_t{8} << 30);
}

// Lookups where hardly any queries share a list and pairs are many, products elsewhere: what was measured to be quicker.
TEST(IvfSearchPlan, TablesForListsThatAreNotShared) {
  EXPECT_TRUE(planned(product(80, 20, 8), 10000, 16, 262144, 1'000'000'000).tables);
  EXPECT_TRUE(planned(product(128, 8, 8), 10000, 16, 262144, 1'000'000'000).tables);
  EXPECT_FALSE(planned(product(128, 8, 8), 10000, 1, 4096, 10'000'000).tables);
  EXPECT_FALSE(planned(product(128, 8, 8), 10000, 32, 4096, 10'000'000).tables);
  EXPECT_FALSE(planned(product(128, 32, 8), 10000, 2, 32768, 10'000'000).tables);
  EXPECT_FALSE(planned(product(128, 8, 8), 100, 32, 4096, 10'000'000).tables);
  EXPECT_FALSE(planned(product(128, 32, 8), 1, 32, 4096, 10'000'000).tables);
  EXPECT_TRUE(planned(product(80, 20, 8), 10000, 16, 65536, 100'000'000).tables);
  EXPECT_TRUE(planned(product(128, 8, 8), 10000, 16, 32768, 10'000'000).tables);
  EXPECT_FALSE(planned(product(128, 32, 8), 10000, 16, 32768, 10'000'000).tables);
  EXPECT_FALSE(planned(product(128, 8, 8), 10000, 16, 32768, 10'000'000, ScanTerm::none).tables);
  EXPECT_FALSE(planned(product(128, 32, 4), 10000, 16, 262144, 1'000'000'000).tables);  // has no such tables
  EXPECT_FALSE(planned(stored(128, DType::f32), 10000, 16, 262144, 1'000'000'000).tables);
}

// Lookups find beside the lists what there is room for, and pay more often with it; products of other metrics have none.
TEST(IvfSearchPlan, TermsOfLookups) {
  const CodeFormat format = product(128, 8, 8);
  const int64_t lists = 262144;
  const int64_t vectors = 1'000'000'000;
  EXPECT_EQ(scan_term_within(4 * vectors, format, lists, vectors), ScanTerm::of_vector);
  EXPECT_EQ(scan_term_within(4 * vectors - 1, format, lists, vectors), ScanTerm::of_list);
  EXPECT_EQ(scan_term_within(lists * 8 * 1024 - 1, format, lists, vectors), ScanTerm::none);
  IvfSearchShape shape;
  shape.format = format;
  shape.queries = 10000;
  shape.slots = 16;
  shape.k = 100;
  shape.lists = lists;
  shape.vectors = vectors;
  shape.multiprocessors = 132;
  for (const ScanTerm term : {ScanTerm::none, ScanTerm::of_list, ScanTerm::of_vector}) {
    shape.term = term;
    EXPECT_EQ(plan_ivf_search(shape, int64_t{8} << 30).term, term);
  }
  shape.kind = KeyKind::inner_product;
  EXPECT_FALSE(plan_ivf_search(shape, int64_t{8} << 30).tables);
  shape.kind = KeyKind::squared_l2;
  shape.tables = 0;
  EXPECT_EQ(plan_ivf_search(shape, int64_t{8} << 30).term, ScanTerm::none);
}

// One long list: a sample of all of it, and room for what its k-th value lets pass.
TEST(IvfSearchPlan, ALongListIsSampledThroughout) {
  for (const int64_t rows : {300'000, 1'000'000, 5'000'000}) {
    const IvfSearchPlan plan = planned(additive(128, 7, 8), 10000, 1, 1, rows);
    EXPECT_GE(plan.cut.sample_every * plan.cut.kept_rows, rows) << rows;
    EXPECT_LE(plan.values, kMostFirstValues) << rows;
    EXPECT_GE(plan.candidates, 100 * rows / plan.values * 5 / 4) << rows;
    EXPECT_FALSE(plan.direct);
  }
  EXPECT_EQ(planned(additive(128, 7, 8), 10000, 1, 1, 100'000).cut.sample_every, 1);
}

// A list of most vectors: queries that meet it get a sample of all of it, and room for what that lets pass.
TEST(IvfSearchPlan, AListOfMostVectorsIsSampledThroughout) {
  IvfSearchShape shape;
  shape.format = stored(128, DType::f32);
  shape.queries = 10000;
  shape.slots = 32;
  shape.lists = 2048;
  shape.vectors = 1'000'000;
  shape.multiprocessors = 132;
  for (const int64_t k : {10, 100}) {
    shape.k = k;
    shape.longest = 2000;
    const IvfSearchPlan even = plan_ivf_search(shape, int64_t{8} << 30);
    EXPECT_FALSE(even.cut.rescans);
    shape.longest = 700'000;
    const IvfSearchPlan plan = plan_ivf_search(shape, int64_t{8} << 30);
    EXPECT_TRUE(plan.cut.rescans);
    const int64_t seen = plan.cut.first_rows_of(700'000);
    EXPECT_GE(plan.candidates, 3 * k * 700'000 / seen / 2);
    EXPECT_LE(plan.cut.first_rows - 1 + plan.cut.kept_rows, plan.values);
    EXPECT_GT(plan.cut.later_run_rows, even.cut.later_run_rows);
    // What little memory leaves room for is cut the same way.
    const IvfSearchPlan small = plan_ivf_search(shape, int64_t{64} << 20);
    EXPECT_LT(small.batch, plan.batch);
    EXPECT_TRUE(small.cut.rescans);
    EXPECT_EQ(small.candidates, plan.candidates);
  }
}

// A piece of the lists, of which few are in it: with bounds from a sample the first pass takes little, whatever lists'
// length, and many queries have room.
TEST(IvfSearchPlan, BoundsSpareTheFirstPass) {
  IvfSearchShape shape;
  shape.format = product(96, 32, 8);
  shape.queries = 10000;
  shape.slots = 10;
  shape.lists = 4096;
  shape.filled = 300;
  shape.vectors = 300 * 24'000;
  shape.longest = 60'000;
  shape.multiprocessors = 132;
  shape.warpgroups = true;
  for (const int64_t k : {1, 10, 100, 256}) {
    shape.k = k;
    shape.bounded = false;
    const IvfSearchPlan without = plan_ivf_search(shape, int64_t{8} << 30);
    shape.bounded = true;
    const IvfSearchPlan plan = plan_ivf_search(shape, int64_t{8} << 30);
    EXPECT_EQ(plan.batch, shape.queries);
    EXPECT_LT(plan.values, without.values);
    EXPECT_TRUE(plan.cut.rescans);
    EXPECT_EQ(plan.cut.kept_rows % kSampleRows, 0);
    EXPECT_GE(plan.cut.kept_rows, k);
    EXPECT_LE(plan.cut.first_rows - 1 + plan.cut.kept_rows, plan.values);
    // What the k-th of the sample of the longest list lets pass.
    EXPECT_GE(plan.candidates, 2 * k * shape.longest / plan.cut.first_rows_of(shape.longest)) << k;
  }
  shape.k = 10;
  EXPECT_LE(plan_ivf_search(shape, int64_t{8} << 30).bytes, int64_t{500} << 20);
}

// Wide vectors by products of warpgroups, where the device has them: queries at a time as the memory has room for.
TEST(IvfSearchPlan, WideVectorsOnHopper) {
  IvfSearchShape shape;
  shape.queries = 10000;
  shape.slots = 32;
  shape.k = 10;
  shape.lists = 2048;
  shape.vectors = 1'000'000;
  shape.multiprocessors = 132;
  for (const CodeFormat& format : {stored(768, DType::f32), product(768, 96, 8), scalar(20000, 8)}) {
    shape.format = format;
    shape.warpgroups = true;
    const IvfSearchPlan plan = plan_ivf_search(shape, int64_t{8} << 30);
    EXPECT_TRUE(plan.wide) << name_of(format);
    EXPECT_FALSE(plan.direct) << name_of(format);
    EXPECT_EQ(plan.cut.group_queries, kWideQueries);
    EXPECT_LE(plan.bytes, int64_t{8} << 30) << name_of(format);
    const IvfSearchPlan small = plan_ivf_search(shape, int64_t{64} << 20);
    EXPECT_TRUE(small.wide) << name_of(format);
    EXPECT_LT(small.batch, plan.batch) << name_of(format);
    EXPECT_LE(small.bytes, int64_t{64} << 20) << name_of(format);
    shape.warpgroups = false;
    EXPECT_FALSE(plan_ivf_search(shape, int64_t{8} << 30).wide) << name_of(format);
  }
  shape.warpgroups = true;
  shape.format = stored(128, DType::f32);
  EXPECT_FALSE(plan_ivf_search(shape, int64_t{8} << 30).wide);
  shape.kept = 1000;
  for (const CodeFormat& format : {stored(768, DType::f16), scalar(200, 4), additive(200, 3, 8)}) {
    shape.format = format;
    for (const KeyKind kind : kKinds) {
      shape.kind = kind;
      SCOPED_TRACE(::testing::Message() << name_of(format) << ", kind " << static_cast<int>(kind));
      EXPECT_TRUE(plan_ivf_search(shape, int64_t{8} << 30).wide);
    }
  }
}

// A sample where reading lists twice would take longer, or where first pairs are few of all.
TEST(IvfSearchPlan, SamplesOfLongCodesAndOfManyLists) {
  EXPECT_EQ(planned(product(128, 8, 8), 10000, 8, 4096, 10'000'000).cut.sample_every, 1);
  EXPECT_EQ(planned(product(128, 8, 8), 10000, 128, 4096, 10'000'000).cut.sample_every, 4);
  EXPECT_EQ(planned(stored(128, DType::f32), 10000, 32, 4096, 10'000'000).cut.sample_every, 4);
  EXPECT_EQ(planned(stored(128, DType::f32), 10000, 8, 4096, 10'000'000).cut.sample_every, 1);
  EXPECT_EQ(planned(stored(128, DType::f32), 10000, 1, 4096, 10'000'000).cut.sample_every, 1);
}

}  // namespace
}  // namespace kith
