// What the plan of the search of lists on a GPU chooses; no GPU is asked.
#include "cuda/searched_lists.hpp"

#include "ivf/search/list_backend_cuda.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

// A batch of queries of 64 uneven lists, whole or in pieces of 8.
struct UnevenBatch {
  RoundShape round;
  IvfSearchShape part;

  UnevenBatch(const CodeFormat& format, int64_t queries, int64_t k, bool in_pieces) {
    round.cols = format.cols;
    round.slots = part.slots = 16;
    round.k = part.k = k;
    round.found_lists = in_pieces ? 3 : 1;
    round.brings = true;
    round.in_pieces = in_pieces;
    part.format = format;
    part.queries = queries;
    part.lists = 64;
    part.filled = in_pieces ? 8 : 0;
    part.vectors = 1'000'000;
    part.longest = 900'000;
    part.multiprocessors = 132;
    part.repeats = true;
    part.bounded = true;
    part.tables = 0;
  }

  ListsCudaPlan planned(int64_t beside, int64_t most) const {
    ListsCudaPlan plan;
    plan.query_batch = part.queries;
    plan_scans(round, {part}, beside, most, plan);
    return plan;
  }
};

constexpr int64_t kBytesBeyond[] = {0, 1, 100, 255, 256, 257, 99'999, 3'000'001, 50'000'001};

// What a plan says of a batch's memory is what its layout takes, and what is beside; it fits any number of bytes.
TEST(IvfSearchPlan, ABatchTakesWhatIsPlanned) {
  for (const CodeFormat& format : {product(32, 16, 8), scalar(32, 8), stored(32, DType::f32)}) {
    for (const int64_t queries : {1, 50, 3000}) {
      for (const bool in_pieces : {false, true}) {
        SCOPED_TRACE(::testing::Message() << name_of(format) << ", " << queries << (in_pieces ? " in pieces" : ""));
        const UnevenBatch batch(format, queries, 10, in_pieces);
        for (const int64_t beside : {int64_t{0}, 4 * queries, int64_t{12'345}}) {
          const int64_t least = batch.planned(beside, 0).device_bytes;
          for (const int64_t more : kBytesBeyond) {
            const ListsCudaPlan plan = batch.planned(beside, least + more);
            EXPECT_EQ(plan.device_bytes, RoundLayout(batch.round, queries, plan.scan_bytes).bytes + beside) << more;
            EXPECT_LE(plan.device_bytes, least + more);
            EXPECT_LE(plan.parts.front().bytes, plan.scan_bytes) << more;
          }
        }
      }
    }
  }
}

// What is planned of all pieces has room for each: any of the queries, some of their lists, and lists of any length.
TEST(IvfSearchPlan, APieceFitsWhatIsPlannedOfAll) {
  for (const CodeFormat& format : {product(32, 16, 8), scalar(32, 8), stored(32, DType::f32)}) {
    for (const int64_t k : {1, 10, 300}) {
      for (const int64_t queries : {1, 50, 3000}) {
        const UnevenBatch batch(format, queries, k, true);
        const int64_t least = batch.planned(0, 0).device_bytes;
        for (const int64_t more : kBytesBeyond) {
          const int64_t room = batch.planned(0, least + more).scan_bytes;
          IvfSearchShape piece = batch.part;
          for (piece.queries = 1; piece.queries <= queries; piece.queries *= 3) {
            for (const int64_t slots : {1, 2, 7, 16}) {
              for (const int64_t longest : {100, 10'000, 200'000, 900'000}) {
                for (const int64_t filled : {1, 4, 64}) {
                  piece.slots = slots;
                  piece.longest = longest;
                  piece.filled = filled;
                  piece.vectors = std::min<int64_t>(1'000'000, longest * filled);
                  for (const bool bounded : {false, true}) {
                    piece.bounded = bounded;
                    EXPECT_LE(plan_ivf_search(piece, room).bytes, room)
                        << name_of(format) << ", k " << k << ", " << more << " bytes more, " << piece.queries << " of "
                        << queries << " queries, " << slots << " of " << filled << " lists up to " << longest;
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kith
