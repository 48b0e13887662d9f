// Index::tune(): what it measures is true, the choice goes by recall and comparisons, and the table stays with the
// index, in its file too.
#include <kith/error.hpp>
#include <kith/index.hpp>

#include "index/index_check.hpp"
#include "reference/data.hpp"
#include "reference/sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

constexpr int64_t kTuneCols = 16;
constexpr int64_t kTuneQueries = 80;

Matrix<float> rows_of(int64_t count) { return make_floats(Shape::gaussian, count, kTuneCols, 1); }
Matrix<float> queries_of() { return make_floats(Shape::gaussian, kTuneQueries, kTuneCols, 2); }

Index index_to_tune(const char* factory, const MatrixView& rows, Metric metric = Metric::l2) {
  Index index(factory, {.metric = metric});
  if (!index.trained()) index.train(rows, on_cpu());
  index.add(rows, Ownership::copy, on_cpu());
  return index;
}

SearchParams params_of(const TunedSearch& tuned, int64_t k) {
  SearchParams params{.k = k, .probes = tuned.probes, .refine = tuned.refine};
  params.beam = tuned.beam;
  params.width = tuned.width;
  return params;
}

double recall_of(const Neighbors& found, const Neighbors& truth) {
  int64_t right = 0;
  for (int64_t q = 0; q < found.queries(); ++q) {
    const float last = truth.distances(q)[truth.k() - 1];
    for (int64_t i = 0; i < found.k(); ++i) right += found.ids(q)[i] >= 0 && found.distances(q)[i] <= last ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(found.queries() * found.k());
}

class TunedKinds : public ::testing::TestWithParam<const char*> {
 protected:
  const Matrix<float> rows_ = rows_of(reference::fewer_if_sanitized(6000, 5000));
  const Matrix<float> queries_ = queries_of();
};

TEST_P(TunedKinds, WhatItMeasuresIsTrueAndTheChoiceIsTheCheapest) {
  Index index = index_to_tune(GetParam(), rows_.view());
  const Neighbors truth = knn(queries_.view(), rows_.view(), {.k = 10}, on_cpu());
  const TuneReport report = index.tune(queries_.view(), {.k = 10, .recall = 0.9}, on_cpu());
  ASSERT_FALSE(report.table.searches.empty());
  EXPECT_TRUE(report.reached);
  EXPECT_EQ(report.table.k, 10);
  EXPECT_EQ(report.table.rows, rows_.view().rows());
  double last = 0;
  for (const TunedSearch& one : report.table.searches) {
    EXPECT_GE(one.compared, last);
    last = one.compared;
    if (one.recall >= 0.9) {
      EXPECT_GE(one.compared, report.chosen.compared);
    }
  }
  EXPECT_GE(report.chosen.recall, 0.9);
  EXPECT_GT(report.chosen.compared, 0);
  EXPECT_GT(report.chosen.seconds, 0);
  // These kinds keep the vectors as they are: what is true is what knn() says.
  const Neighbors found = index.search(queries_.view(), params_of(report.chosen, 10), on_cpu());
  EXPECT_DOUBLE_EQ(recall_of(found, truth), report.chosen.recall);
  expect_same(index.search(queries_.view(), {.k = 10, .recall = 0.9}, on_cpu()), found);
}

TEST_P(TunedKinds, ARecallThatNothingHadIsSearchedExactly) {
  Index index = index_to_tune(GetParam(), rows_.view());
  const TuneReport report = index.tune(queries_.view(), {.k = 10, .recall = 0.5}, on_cpu());
  if (report.table.find(1.0) != nullptr) return;  // something had it
  const Neighbors truth = knn(queries_.view(), rows_.view(), {.k = 10}, on_cpu());
  EXPECT_EQ(recall_of(index.search(queries_.view(), {.k = 10, .recall = 1.0}, on_cpu()), truth), 1.0);
}

TEST_P(TunedKinds, TheTableIsTheSameForAnyThreadsAndBatch) {
  Index index = index_to_tune(GetParam(), rows_.view());
  const auto without_times = [](TuneTable table) {
    for (TunedSearch& one : table.searches) one.seconds = 0;
    return table;
  };
  const TuneTable one = without_times(index.tune(queries_.view(), {.batch = 1}, on_cpu(kNoLimit, 1)).table);
  EXPECT_EQ(one, without_times(index.tune(queries_.view(), {.batch = 33}, on_cpu(kNoLimit, 2)).table));
}

TEST_P(TunedKinds, TheTableIsSavedAndStaysThroughAddAndRemove) {
  Index index = index_to_tune(GetParam(), rows_.view());
  const TuneTable table = index.tune(queries_.view(), {}, on_cpu()).table;
  EXPECT_EQ(index.info().tuned, table);
  const std::string path = ::testing::TempDir() + "tuned_index.kith";
  index.save(path, on_cpu());
  const Index loaded = Index::load(path, on_cpu());
  std::filesystem::remove(path);
  TuneTable there = loaded.info().tuned;
  ASSERT_EQ(there.searches.size(), table.searches.size());
  for (size_t i = 0; i < table.searches.size(); ++i) there.searches[i].seconds = table.searches[i].seconds;
  EXPECT_EQ(there, table);
  expect_same(loaded.search(queries_.view(), {.recall = 0.9}, on_cpu()),
              index.search(queries_.view(), {.recall = 0.9}, on_cpu()));
  index.add(queries_.view(), Ownership::copy, on_cpu());
  const std::vector<int64_t> gone{1, 2, 3};
  index.remove(view(gone), on_cpu());
  index.compact(on_cpu());
  EXPECT_EQ(index.info().tuned, table);
  EXPECT_EQ(index.to(Device::cpu()).info().tuned, table);
}

TEST_P(TunedKinds, TheNamedLimitDoes) {
  Index index = index_to_tune(GetParam(), rows_.view());
  const std::string message = message_of([&] { index.tune(queries_.view(), {}, on_cpu(1 << 10)); });
  EXPECT_THAT(message, ::testing::HasSubstr("memory"));
  int64_t limit = 1 << 10;
  for (int tries = 0; tries < 3; ++tries) {
    try {
      (void)index.tune(queries_.view(), {}, on_cpu(limit));
      return;
    } catch (const OutOfMemory& error) {
      EXPECT_GT(error.bytes_needed(), limit);
      limit = error.bytes_needed();
    }
  }
  FAIL() << "the limit that is named does not do";
}

INSTANTIATE_TEST_SUITE_P(IndexTune, TunedKinds,
                         ::testing::Values("Flat", "IVF32,Flat", "IVF16,PQ4,RFlat", "Graph16", "PCA16,IVF16,SQ8,RFlat",
                                           "Graph16,SQ8,RFlat"));

TEST(IndexTune, RemovedRowsDoNotCount) {
  const Matrix<float> rows = rows_of(3000);
  const Matrix<float> queries = queries_of();
  Index index = index_to_tune("IVF16,Flat", rows.view());
  std::vector<int64_t> gone;
  for (int64_t i = 0; i < 500; ++i) gone.push_back(6 * i);
  index.remove(view(gone), on_cpu());
  EXPECT_GT(index.info().dead, 0);
  const TuneReport report = index.tune(queries.view(), {.recall = 1}, on_cpu());
  EXPECT_TRUE(report.reached);
  EXPECT_EQ(report.table.rows, 2500);
}

TEST(IndexTune, ErrorsSayWhatToDo) {
  const Matrix<float> rows = rows_of(500);
  const Matrix<float> queries = queries_of();
  Index index = index_to_tune("IVF8,Flat", rows.view());
  using ::testing::HasSubstr;
  EXPECT_THAT(message_of([&] { (void)index.search(queries.view(), {.recall = 0.9}, on_cpu()); }), HasSubstr("tune"));
  EXPECT_THROW((void)index.search(queries.view(), {.probes = 2, .recall = 0.9}, on_cpu()), InvalidArgument);
  EXPECT_THROW(index.tune(queries.view(), {.k = 0}, on_cpu()), InvalidArgument);
  EXPECT_THROW(index.tune(queries.view(), {.recall = 0}, on_cpu()), InvalidArgument);
  EXPECT_THROW(index.tune(queries.view(), {.recall = 1.5}, on_cpu()), InvalidArgument);
  EXPECT_THROW(index.tune(queries.view(), {.batch = -1}, on_cpu()), InvalidArgument);
  EXPECT_THROW(index.tune(queries.view().slice(0, 0), {}, on_cpu()), InvalidArgument);
  EXPECT_THROW(index.tune(make_floats(Shape::gaussian, 3, kTuneCols + 1, 1).view(), {}, on_cpu()), InvalidArgument);
  Index empty("Flat");
  EXPECT_THROW(empty.tune(queries.view(), {}, on_cpu()), InvalidState);
  EXPECT_THROW(Index("IVF8,Flat").tune(queries.view(), {}, on_cpu()), InvalidState);
}

// So few rows have no graph: what was measured of them says nothing of the graph that they grow to.
TEST(IndexTune, AGraphThatWasTunedBeforeItHadOneAsksItsOwnTable) {
  const Matrix<float> few = rows_of(300);
  const Matrix<float> more = make_floats(Shape::gaussian, 5000, kTuneCols, 3);
  const Matrix<float> queries = queries_of();
  Index tuned = index_to_tune("Graph16", few.view());
  Index other = index_to_tune("Graph16", few.view());
  tuned.tune(queries.view(), {}, on_cpu());
  tuned.add(more.view(), Ownership::copy, on_cpu());
  other.add(more.view(), Ownership::copy, on_cpu());
  const SearchParams asked{.k = 10, .recall = 0.999};
  expect_same(tuned.search(queries.view(), asked, on_cpu()), other.search(queries.view(), asked, on_cpu()));
}

TEST(IndexTune, KAboveTheRows) {
  const Matrix<float> rows = rows_of(50);
  const Matrix<float> queries = queries_of();
  Index index = index_to_tune("IVF4,Flat", rows.view());
  const TuneReport report = index.tune(queries.view(), {.k = 100, .recall = 1}, on_cpu());
  EXPECT_TRUE(report.reached);
  EXPECT_EQ(report.chosen.recall, 1.0);
}

}  // namespace
}  // namespace kith
