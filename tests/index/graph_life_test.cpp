// Index("Graph32") as rows come and go: growth, removal, compaction, and searches meanwhile.
#include <kith/error.hpp>
#include <kith/index.hpp>

#include "index/graph_check.hpp"
#include "index/index_check.hpp"
#include "reference/data.hpp"
#include "reference/data_kinds.hpp"
#include "reference/sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

TEST(GraphLife, GrowsByPiecesAndSingleRows) {
  const int64_t count = walked_rows();
  const auto rows = reference::make_kind("low_rank_24", count + 1000, 1);
  Index index = graph_of(rows.view().slice(0, count));
  for (int64_t i = 0; i < 20; ++i) index.add(rows.view().slice(count + i, 1), Ownership::copy, on_cpu());
  EXPECT_EQ(index.info().unlinked, 20);
  index.add(rows.view().slice(count + 20, 200), Ownership::copy, on_cpu());
  EXPECT_EQ(index.info().unlinked, 220);
  const MatrixView added = rows.view().slice(count, 220);
  const Neighbors own = index.search(added, {.k = 1}, on_cpu());
  for (int64_t i = 0; i < 220; ++i) ASSERT_EQ(own.ids(i)[0], count + i);
  index.add(rows.view().slice(count + 220, 780), Ownership::copy, on_cpu());  // linked with those before
  EXPECT_EQ(index.info().unlinked, 0);
  index.add(rows.view().slice(0, 100), Ownership::copy, on_cpu());
  EXPECT_EQ(index.info().unlinked, 100);
  EXPECT_EQ(index.size(), count + 1100);
}

TEST(GraphLife, AThousandAddsOfOneRow) {
  const int64_t count = walked_rows();
  const int64_t adds = reference::fewer_if_sanitized(1000, 300);
  const auto rows = reference::make_kind("low_rank_24", count + adds, 1);
  Index index = graph_of(rows.view().slice(0, count));
  for (int64_t i = 0; i < adds; ++i) index.add(rows.view().slice(count + i, 1), Ownership::copy, on_cpu());
  EXPECT_EQ(index.size(), count + adds);
  EXPECT_LE(index.info().unlinked, 256);
  const MatrixView added = rows.view().slice(count, adds);
  const Neighbors own = index.search(added, {.k = 1, .beam = 48}, on_cpu());
  int64_t found = 0;
  for (int64_t i = 0; i < adds; ++i) found += own.ids(i)[0] == count + i ? 1 : 0;
  EXPECT_GE(found * 200, adds * 199);
}

// Rows that come later are linked into the graph: found as well as if it had been built of all, whatever the threads.
TEST(GraphLife, LinksRowsThatComeLater) {
  const int64_t first = reference::fewer_if_sanitized(12000, 6000);
  const int64_t piece = 1100;
  const int64_t pieces = reference::fewer_if_sanitized(4, 1);
  auto data = reference::make_kind("low_rank_24", first + piece * pieces + 200, 1);
  std::copy_n(data.row(5), data.cols, data.row(first + 3));  // as one that is there
  for (int64_t i = 10; i < 60; ++i) std::copy_n(data.row(first + 10), data.cols, data.row(first + i));
  const MatrixView rows = data.view().slice(0, first + piece * pieces);
  const MatrixView queries = data.view().slice(rows.rows(), 200);
  for (const Metric metric : {Metric::l2, Metric::cosine, Metric::l1}) {
    SCOPED_TRACE(name_of(metric));
    const auto grown = [&](int threads) {
      Index index = graph_of(rows.slice(0, first), "Graph32", metric, threads);
      for (int64_t i = 0; i < pieces; ++i) {
        index.add(rows.slice(first + i * piece, piece), Ownership::copy, on_cpu(kNoLimit, threads));
      }
      return index;
    };
    const Index index = grown(2);
    EXPECT_EQ(index.info().unlinked, 0);
    EXPECT_LE(index.info().lost * 1000, rows.rows());
    const SearchParams params{.k = 10, .beam = 48};
    const Neighbors found = index.search(queries, params, on_cpu());
    const Index fresh = graph_of(rows, "Graph32", metric);
    const double built = recall_of(fresh, fresh.search(queries, params, on_cpu()), queries, rows);
    EXPECT_GE(recall_of(index, found, queries, rows), built - 0.02);
    const Neighbors own = index.search(rows.slice(first, piece), {.k = 1, .beam = 48}, on_cpu());
    int64_t missed = 0;
    for (int64_t i = 0; i < piece; ++i) missed += own.distances(i)[0] > 1e-3F ? 1 : 0;
    EXPECT_LE(missed, piece / 200);
    EXPECT_EQ(own.ids(3)[0], 5);
    EXPECT_EQ(own.ids(59)[0], first + 10);
    if (metric == Metric::l2) expect_same(found, grown(8).search(queries, params, on_cpu()));
  }
}

TEST(GraphLife, RemovedRowsAreNeverFound) {
  const auto rows = reference::make_kind("low_rank_24", walked_rows(), 1);
  const MatrixView queries = rows.view().slice(0, 40);
  Index index = graph_of(rows.view());
  std::vector<int64_t> gone;
  for (int64_t i = 0; i < rows.rows; i += 7) gone.push_back(i);
  index.remove(view(gone), on_cpu());
  EXPECT_GT(index.info().dead, 0);
  const auto expect_left = [&] {
    const Neighbors found = index.search(queries, {.k = 10, .beam = 60}, on_cpu());
    std::vector<int64_t> left;
    for (int64_t i = 0; i < rows.rows; ++i) {
      if (i % 7 != 0) left.push_back(i);
    }
    const RowFilter filter = RowFilter::rows(left.data(), std::ssize(left));
    for (int64_t i = 0; i < 400; ++i) ASSERT_NE(found.ids()[i] % 7, 0);
    EXPECT_GE(recall_of(index, found, queries, rows.view(), filter), 0.9);
  };
  expect_left();
  index.compact(on_cpu());
  EXPECT_EQ(index.info().dead, 0);
  expect_left();
  index.remove(view(numbers(rows.rows)), on_cpu());
  EXPECT_EQ(index.size(), 0);
  EXPECT_EQ(index.search(queries, {}, on_cpu()).ids()[0], -1);
  index.add(rows.view(), Ownership::copy, on_cpu());
  EXPECT_EQ(index.size(), rows.rows);
  EXPECT_GE(index.search(queries, {}, on_cpu()).ids()[0], rows.rows);
}

// Half of the rows are replaced in ten steps: what is found then is within a point of what a graph built of them finds.
TEST(GraphLife, LivesThroughRemovalAndGrowth) {
  const int64_t count = reference::fewer_if_sanitized(12000, 6000);
  const int64_t piece = count / 20;
  const int64_t steps = reference::fewer_if_sanitized(10, 2);
  const auto data = reference::make_kind("low_rank_24", count + steps * piece + 200, 1);
  const MatrixView rows = data.view().slice(0, count + steps * piece);
  const MatrixView queries = data.view().slice(rows.rows(), 200);
  const auto lived = [&](int threads) {
    Index index = graph_of(rows.slice(0, count), "Graph32", Metric::l2, threads);
    for (int64_t step = 0; step < steps; ++step) {
      std::vector<int64_t> gone;
      for (int64_t i = 0; i < piece; ++i) gone.push_back((step * piece + i) * 2 % count + (step >= 5 ? 1 : 0));
      index.remove(view(gone), on_cpu(kNoLimit, threads));
      index.add(rows.slice(count + step * piece, piece), Ownership::copy, on_cpu(kNoLimit, threads));
    }
    index.compact(on_cpu(kNoLimit, threads));
    return index;
  };
  const Index index = lived(2);
  EXPECT_EQ(index.info().dead, 0);
  EXPECT_LE(index.info().lost * 1000, index.size());
  std::vector<int64_t> left;
  for (int64_t id = 0; id < rows.rows(); ++id) {
    try {
      std::vector<float> vector(static_cast<size_t>(rows.cols()));
      index.reconstruct({&id, 1, {}}, MutableMatrixView(vector.data(), 1, rows.cols()), on_cpu());
      left.push_back(id);
    } catch (const InvalidArgument&) {
    }
  }
  ASSERT_EQ(std::ssize(left), index.size());
  Index fresh("Graph32");
  std::vector<float> values;
  for (const int64_t id : left) values.insert(values.end(), data.row(id), data.row(id) + data.cols);
  const MatrixView kept(values.data(), std::ssize(left), data.cols);
  fresh.add(kept, view(left), Ownership::copy, on_cpu());
  const SearchParams params{.k = 10, .beam = 48};
  const RowFilter filter = RowFilter::rows(left.data(), std::ssize(left));
  const Neighbors found = index.search(queries, params, on_cpu());
  const double built = recall_of(fresh, fresh.search(queries, params, on_cpu()), queries, rows, filter);
  EXPECT_GE(recall_of(index, found, queries, rows, filter), built - 0.01);
  expect_same(found, lived(7).search(queries, params, on_cpu()));
}

// Compaction drops places and keeps the graph: a file written then says so, and nobody searches the places that went.
TEST(GraphLife, CompactionKeepsTheGraphUnlessMostRowsGo) {
  auto data = reference::make_kind("low_rank_24", walked_rows() * 2, 1);
  for (int64_t i = 100; i < 140; ++i) std::copy_n(data.row(100), data.cols, data.row(i));  // at one place
  for (const int64_t of : {7, 3}) {
    Index index = graph_of(data.view(), "Graph32");
    std::vector<int64_t> gone;
    for (int64_t i = 0; i < data.rows; ++i) {
      if (i % of == 0 || (i >= 100 && i < 130)) gone.push_back(i);
    }
    index.remove(view(gone), on_cpu());
    index.compact(on_cpu());
    EXPECT_EQ(index.size(), data.rows - std::ssize(gone));
    const Neighbors found = index.search(data.view().slice(0, 300), {.k = 10, .beam = 64}, on_cpu());
    std::vector<bool> is_gone(static_cast<size_t>(data.rows), false);
    for (const int64_t id : gone) is_gone[static_cast<size_t>(id)] = true;
    for (int64_t i = 0; i < 3000; ++i) ASSERT_FALSE(is_gone[static_cast<size_t>(found.ids()[i])]);
    EXPECT_EQ(found.ids(100)[0], 130);
    int64_t own = 0;
    for (int64_t i = 140; i < 300; ++i) own += i % of == 0 || found.ids(i)[0] == i ? 1 : 0;
    EXPECT_GE(own, 159);
    const std::string path = ::testing::TempDir() + "compacted_graph.kith";
    index.save(path, on_cpu());
    expect_same(found, Index::load(path, on_cpu()).search(data.view().slice(0, 300), {.k = 10, .beam = 64}, on_cpu()));
    std::filesystem::remove(path);
  }
}

// Codes are made for the first rows; those of rows far from them would all be clipped to one place.
TEST(GraphLife, RowsFarFromTheFirstGetCodesOfTheirOwn) {
  auto data = reference::make_kind("low_rank_24", 9000, 1);
  for (int64_t i = 8000; i < 9000; ++i) {
    for (int64_t c = 0; c < data.cols; ++c) data.row(i)[c] = data.row(i)[c] * 0.5F + (c % 2 == 0 ? 300.0F : -300.0F);
  }
  Index index = graph_of(data.view().slice(0, 8000));
  const int64_t before = index.info().clipped;
  index.add(data.view().slice(8000, 1000), Ownership::copy, on_cpu());
  EXPECT_EQ(index.info().unlinked, 0);
  EXPECT_LE(index.info().clipped, before + 1000 * data.cols / 100);
  const MatrixView queries = data.view().slice(8500, 100);
  EXPECT_GE(recall_of(index, index.search(queries, {.k = 10}, on_cpu()), queries, data.view()), 0.9);
}

// Few rows are linked: they need no room for a whole build.
TEST(GraphLife, AFewRowsGoInWithLessRoomThanABuild) {
  const auto data = reference::make_kind("low_rank_24", walked_rows() + 600, 1);
  const auto built = [&] { return graph_of(data.view().slice(0, walked_rows()), "Graph32"); };
  const auto add_within = [&](Index index, int64_t count, int64_t limit) {
    index.add(data.view().slice(walked_rows(), count), Ownership::copy, on_cpu(limit));
    return index;
  };
  for (const int64_t count : {3, 600}) {
    int64_t needed = 0;
    try {
      (void)add_within(built(), count, 1);
    } catch (const OutOfMemory& error) {
      needed = error.bytes_needed();
    }
    ASSERT_GT(needed, 1);
    const Index index = add_within(built(), count, needed);
    EXPECT_EQ(index.size(), walked_rows() + count);
    int64_t whole = 0;
    try {
      Index other("Graph32");
      other.add(data.view().slice(0, walked_rows() + count), Ownership::copy, on_cpu(1000));
    } catch (const OutOfMemory& error) {
      whole = error.bytes_needed();
    }
    EXPECT_LT(needed, whole);
  }
}

// What compaction names as its limit is enough, and less than a build takes where it drops places from the graph.
TEST(GraphLife, CompactionNeedsNoRoomForABuild) {
  const auto data = reference::make_kind("low_rank_24", walked_rows() + 100, 1);
  for (const int64_t of : {10, 7}) {
    const auto removed = [&] {
      Index index = graph_of(data.view().slice(0, walked_rows()), "Graph32");
      index.add(data.view().slice(walked_rows(), 100), Ownership::copy, on_cpu());
      std::vector<int64_t> gone;
      for (int64_t i = 0; i < walked_rows() + 100; i += of) gone.push_back(i);
      index.remove(view(gone), on_cpu());
      return index;
    };
    const auto needed_by = [](const std::function<void()>& call) {
      try {
        call();
      } catch (const OutOfMemory& error) {
        return error.bytes_needed();
      }
      return int64_t{0};
    };
    Index index = removed();
    const int64_t needed = needed_by([&] { index.compact(on_cpu(1000)); });
    ASSERT_GT(needed, 1000);
    index.compact(on_cpu(needed));
    EXPECT_EQ(index.info().dead, 0);
    Index other("Graph32");
    const int64_t whole = needed_by([&] { other.add(data.view(), Ownership::copy, on_cpu(1000)); });
    EXPECT_LT(needed, whole);
  }
}

TEST(GraphLife, SearchesRunWhileRowsComeAndGo) {
  const auto rows = reference::make_kind("low_rank_24", walked_rows(), 1);
  Index index = graph_of(rows.view());
  std::vector<std::thread> readers;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> wrong{0};
  for (int t = 0; t < 8; ++t) {
    readers.emplace_back([&] {
      const Resources one = on_cpu(kNoLimit, 1);
      while (!stop) {
        const Neighbors found = index.search(rows.view().slice(0, 4), {.k = 5}, one);
        for (int64_t i = 0; i < 20; ++i) wrong += found.ids()[i] < 0 ? 1 : 0;
      }
    });
  }
  for (int64_t i = 0; i < 5; ++i) {
    index.add(rows.view().slice(i * 100, 100), Ownership::copy, on_cpu());  // the third links them
    const std::vector<int64_t> gone = numbers(5, 100 + 5 * i);
    index.remove(view(gone), on_cpu());
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace kith
