// Index("Graph32"): recall, the same bytes however it is asked, hard cases, filters, files, and what it refuses;
// growth and removal are in graph_life_test.cpp.
#include <kith/error.hpp>
#include <kith/faiss_file.hpp>
#include <kith/index.hpp>

#include "graph/search/walk/beam_table.hpp"
#include "index/graph_check.hpp"
#include "index/graph_plan.hpp"
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
#include <utility>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

TEST(GraphIndex, FindsNeighborsByEveryMetricAndDistancesAreThoseOfKnn) {
  const auto rows = reference::without_sign(reference::make_kind("low_rank_24", walked_rows(), 1));
  const MatrixView queries = rows.view().slice(0, 50);
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine, Metric::l1,
                              Metric::linf, Metric::chi_square}) {
    SCOPED_TRACE(name_of(metric));
    const Index index = graph_of(rows.view(), "Graph16", metric);
    const Neighbors found = index.search(queries, {.k = 10, .beam = 100}, on_cpu());
    EXPECT_GE(recall_of(index, found, queries, rows.view()), 0.9);
    for (int64_t q = 0; q < 50; ++q) {
      for (int64_t i = 0; i < 10; ++i) {
        const auto row = found.ids(q)[i];
        const float key = reference::canonical(metric, rows.row(q), rows.row(row), rows.cols);
        ASSERT_EQ(found.distances(q)[i], larger_is_nearer(metric) ? 0.0F - key : key);
      }
    }
  }
}

TEST(GraphIndex, TheSameBytesForAnyBatchAndThreads) {
  const auto rows = reference::make_kind("low_rank_24", walked_rows(), 1);
  const auto queries = make_floats(Shape::gaussian, 64, rows.cols, 2);
  const Index index = graph_of(rows.view());
  const Index other = graph_of(rows.view(), "Graph16", Metric::l2, 8);
  const SearchParams params{.k = 7, .beam = 20};
  const Neighbors all = index.search(queries.view(), params, on_cpu());
  expect_same(all, other.search(queries.view(), params, on_cpu(kNoLimit, 8)));
  for (const int64_t batch : {1, 7}) {
    for (int64_t first = 0; first < 64; first += batch) {
      const int64_t count = std::min<int64_t>(batch, 64 - first);
      const Neighbors some = index.search(queries.view().slice(first, count), params, on_cpu(kNoLimit, 1));
      ASSERT_EQ(std::memcmp(some.ids(), all.ids(first), static_cast<size_t>(count * 7) * sizeof(int64_t)), 0);
      ASSERT_EQ(std::memcmp(some.distances(), all.distances(first), static_cast<size_t>(count * 7) * sizeof(float)), 0);
    }
  }
}

TEST(GraphIndex, TheDefaultBeamHasItsRecallAndRecallChoosesABeam) {
  const auto data = reference::make_kind("low_rank_24", walked_rows() + 200, 1);
  const MatrixView rows = data.view().slice(0, walked_rows());
  const MatrixView some = data.view().slice(walked_rows(), 200);
  const Index index = graph_of(rows);
  const IndexInfo info = index.info();
  EXPECT_EQ(info.degree, 16);
  ASSERT_FALSE(info.recalls.empty());
  EXPECT_GE(recall_of(index, index.search(some, {}, on_cpu()), some, rows), 0.9);
  EXPECT_GE(recall_of(index, index.search(some, {.recall = 0.99}, on_cpu()), some, rows), 0.97);
  EXPECT_EQ(recall_of(index, index.search(some, {.recall = 1}, on_cpu()), some, rows), 1);
  expect_same(index.search(some, {}, on_cpu()), index.search(some, {.beam = info.beam}, on_cpu()));
}

TEST(GraphIndex, FewRowsAreSearchedExactly) {
  for (const int64_t count : {1, 2, 15, 300, 4095}) {
    const auto rows = make_floats(Shape::gaussian, count, 8, 1);
    const Index index = graph_of(rows.view(), "Graph32");
    expect_exact(index, rows.view().slice(0, std::min<int64_t>(count, 5)), numbers(count));
    EXPECT_EQ(index.info().beam, 0);
  }
}

TEST(GraphIndex, HardRows) {
  const int64_t count = 4500;
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(name_of(shape));
    const auto rows = make_floats(shape, count, 6, 1);
    const MatrixView queries = rows.view().slice(0, 20);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      const Index index = graph_of(rows.view(), "Graph16", metric);
      const Neighbors found = index.search(queries, {.k = 10, .beam = 64}, on_cpu());
      for (int64_t i = 0; i < 200; ++i) ASSERT_GE(found.ids()[i], 0);
      if (metric == Metric::l2) {
        EXPECT_GE(recall_of(index, found, queries, rows.view()), 0.9);
      }
      EXPECT_LE(index.info().lost * 1000, count);
    }
  }
}

TEST(GraphIndex, ManyEqualRowsFarQueriesAndOneColumn) {
  auto rows = make_floats(Shape::gaussian, walked_rows(), 8, 1);
  for (int64_t i = 0; i < rows.rows / 2; ++i) std::copy_n(rows.row(i % 3), 8, rows.row(i));
  const Index index = graph_of(rows.view());
  const MatrixView three = rows.view().slice(0, 3);
  const Neighbors found = index.search(three, {.k = 50, .beam = 50}, on_cpu());
  EXPECT_EQ(recall_of(index, found, three, rows.view()), 1);
  EXPECT_EQ(found.ids(1)[0], 1);  // the smallest row of all that are equal
  EXPECT_EQ(found.ids(1)[49], 1 + 49 * 3);
  auto far = make_floats(Shape::gaussian, 20, 8, 5);
  for (float& value : far.values) value *= 1000;
  EXPECT_GE(recall_of(index, index.search(far.view(), {.beam = 128}, on_cpu()), far.view(), rows.view()), 0.9);
  const auto line = make_floats(Shape::gaussian, 6000, 1, 1);
  const Index narrow = graph_of(line.view());
  const MatrixView on_line = line.view().slice(0, 30);
  EXPECT_GE(recall_of(narrow, narrow.search(on_line, {.beam = 64}, on_cpu()), on_line, line.view()), 0.9);
}

// Walks over bytes go by the squared distances themselves, and no vector is read again. Rows near each other and far
// from the queries: many squares differ that have the same root in f32, where rows come by their numbers.
TEST(GraphIndex, BytesAreOrderedByTheDistancesThatAreReported) {
  constexpr int64_t kCols = 400;
  auto rows = reference::make_bytes(6000, kCols, 1, 99);
  for (uint8_t& value : rows.values) value = value < 97 ? 0 : static_cast<uint8_t>(value - 96);
  for (int64_t i = 0; i < 500; ++i) std::copy_n(rows.row(i), kCols, rows.row(i + 1000));
  auto queries = reference::make_bytes(20, kCols, 2);
  for (uint8_t& value : queries.values) value = static_cast<uint8_t>(255 - value % 3);
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean}) {
    const Index index = graph_of(rows.view(), "Graph16", metric);
    std::vector<uint8_t> mask(static_cast<size_t>(rows.rows), 1);
    for (int64_t i = 0; i < rows.rows; i += 3) mask[static_cast<size_t>(i)] = 0;
    for (const RowFilter& filter : {RowFilter(), RowFilter::mask(mask.data(), rows.rows)}) {
      const Neighbors found = index.search(queries.view(), {.k = 10, .filter = filter, .beam = 32}, on_cpu());
      for (int64_t q = 0; q < queries.rows; ++q) {
        for (int64_t i = 0; i < 10; ++i) {
          const int64_t id = found.ids(q)[i];
          double square = 0;
          for (int64_t c = 0; c < kCols; ++c) {
            const int apart = queries.row(q)[c] - rows.row(id)[c];
            square += apart * apart;
          }
          const float distance = found.distances(q)[i];
          ASSERT_EQ(distance, static_cast<float>(metric == Metric::l2 ? std::sqrt(square) : square));
          if (i == 0) continue;
          const float before = found.distances(q)[i - 1];
          ASSERT_TRUE(before < distance || (before == distance && found.ids(q)[i - 1] < id));
        }
      }
    }
  }
}

// The longest rows are the answers, and their neighbours by l2 are short ones.
TEST(GraphIndex, InnerProductOfRowsOfAnyLength) {
  const int64_t count = walked_rows();
  const auto queries = make_floats(Shape::gaussian, 100, 16, 3);
  for (const int64_t decades : {0, 6}) {
    SCOPED_TRACE(decades);
    auto rows = make_floats(Shape::gaussian, count, 16, 1);
    for (int64_t i = 0; i < count; ++i) {
      const double exponent =
          static_cast<double>(decades) * (static_cast<double>(i) / static_cast<double>(count) - 0.5);
      for (int64_t c = 0; c < 16; ++c) rows.row(i)[c] *= static_cast<float>(std::pow(10.0, exponent));
    }
    const Index index = graph_of(rows.view(), "Graph32", Metric::inner_product);
    EXPECT_EQ(index.info().clipped, 0);
    EXPECT_EQ(index.info().lost, 0);
    EXPECT_GE(recall_of(index, index.search(queries.view(), {.beam = 48}, on_cpu()), queries.view(), rows.view()),
              0.95);
    EXPECT_GE(recall_of(index, index.search(queries.view(), {}, on_cpu()), queries.view(), rows.view()), 0.93);
  }
}

TEST(GraphIndex, RowsThatOneStepDoesNotTellApartAreWalkedByTheirDistances) {
  const auto rows = make_floats(Shape::mixed_norms, 4500, 6, 1);
  const MatrixView queries = rows.view().slice(0, 50);
  const std::string path = (std::filesystem::temp_directory_path() / "kith_graph_decades_test.kith").string();
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean}) {
    const Index index = graph_of(rows.view(), "Graph16", metric);
    EXPECT_EQ(index.info().clipped, 0);
    const Neighbors found = index.search(queries, {.k = 10, .beam = 64}, on_cpu());
    EXPECT_GE(recall_of(index, found, queries, rows.view()), 0.95);
    index.save(path, on_cpu());
    expect_same(found, Index::load(path, on_cpu()).search(queries, {.k = 10, .beam = 64}, on_cpu()));
  }
  std::remove(path.c_str());
}

TEST(GraphIndex, ClustersThatNothingJoins) {
  for (const int64_t size : {10, 100, 1000}) {
    SCOPED_TRACE(size);
    auto rows = make_floats(Shape::gaussian, walked_rows(), 16, 1);
    const auto centres = make_floats(Shape::gaussian, rows.rows / size, 16, 2);
    auto queries = make_floats(Shape::gaussian, 200, 16, 3);
    const auto move = [&](float* row, int64_t cluster) {
      for (int64_t c = 0; c < 16; ++c) row[c] += 30 * centres.row(cluster)[c];
    };
    for (int64_t i = 0; i < rows.rows; ++i) move(rows.row(i), i / size);
    for (int64_t i = 0; i < queries.rows; ++i) move(queries.row(i), i % centres.rows);
    const Index index = graph_of(rows.view(), "Graph32");
    EXPECT_EQ(index.info().lost, 0);
    const auto expect_recall = [&](const MatrixView& asked, const SearchParams& params, double least) {
      EXPECT_GE(recall_of(index, index.search(asked, params, on_cpu()), asked, rows.view()), least);
    };
    expect_recall(queries.view(), {}, 0.95);
    // A step for all clusters is coarse within one: more candidates are compared again.
    expect_recall(queries.view(), {.refine = 8, .beam = 80}, 0.99);
    expect_recall(rows.view().slice(0, 200), {.refine = 8, .beam = 80}, 0.99);
    const MatrixView all = rows.view();
    const Neighbors own = index.search(all, {.k = 1, .beam = 16}, on_cpu());
    int64_t not_found = 0;
    for (int64_t i = 0; i < rows.rows; ++i) not_found += own.ids(i)[0] != i ? 1 : 0;
    EXPECT_LE(not_found * 1000, rows.rows);  // rows with clipped values lie elsewhere
  }
}

TEST(GraphIndex, FiltersFindAllThatIsKept) {
  const auto rows = reference::make_kind("low_rank_24", walked_rows(), 1);
  const MatrixView queries = rows.view().slice(0, 30);
  const Index index = graph_of(rows.view());
  for (const int64_t each : {1, 2, 10, 100, 3000}) {
    SCOPED_TRACE(each);
    std::vector<uint8_t> mask(static_cast<size_t>(rows.rows), 0);
    for (int64_t i = 0; i < rows.rows; i += each) mask[static_cast<size_t>(i)] = 1;
    const RowFilter filter = RowFilter::mask(mask.data(), rows.rows);
    const Neighbors found = index.search(queries, {.k = 10, .filter = filter, .beam = 40}, on_cpu());
    const int64_t kept = (rows.rows + each - 1) / each;
    for (int64_t q = 0; q < 30; ++q) {
      for (int64_t i = 0; i < 10; ++i) {
        ASSERT_EQ(found.ids(q)[i] >= 0, i < kept);
        if (i < kept) {
          ASSERT_EQ(found.ids(q)[i] % each, 0);
        }
      }
    }
    if (kept >= 10) {
      EXPECT_GE(recall_of(index, found, queries, rows.view(), filter), 0.9);
    }
  }
}

// A filter that keeps the rows far from a query, or near to it: no worse than one that keeps any, whatever the share.
TEST(GraphIndex, FiltersFarFromTheQueryLoseNoRecall) {
  const auto rows = reference::make_kind("low_rank_24", 2 * walked_rows(), 1);
  const Index index = graph_of(rows.view(), "Graph16");
  const MatrixView queries = rows.view().slice(0, 8);
  const SearchParams plain{.k = 10, .beam = 40};
  const double unfiltered = recall_of(index, index.search(queries, plain, on_cpu()), queries, rows.view());
  for (int64_t q = 0; q < queries.rows(); ++q) {
    const MatrixView query = queries.slice(q, 1);
    const Neighbors order = knn(query, rows.view(), {.k = rows.rows}, on_cpu());
    for (const int64_t percent : {95, 80, 50}) {
      for (const bool far : {false, true}) {
        const int64_t count = rows.rows * percent / 100;
        std::vector<int64_t> kept(order.ids() + (far ? rows.rows - count : 0), order.ids() + (far ? rows.rows : count));
        const RowFilter filter = RowFilter::rows(kept.data(), std::ssize(kept));
        const SearchParams params{.k = 10, .filter = filter, .beam = 40};
        const Neighbors found = index.search(query, params, on_cpu());
        EXPECT_GE(recall_of(index, found, query, rows.view(), filter), std::min(unfiltered - 0.1, 0.9));
        expect_same(found, index.search(query, params, on_cpu(kNoLimit, 7)));
      }
    }
  }
}

TEST(GraphIndex, KAboveTheBeamAndAboveTheRows) {
  const auto rows = reference::make_kind("low_rank_24", walked_rows(), 1);
  const MatrixView queries = rows.view().slice(0, 3);
  const Index index = graph_of(rows.view());
  const Neighbors many = index.search(queries, {.k = 60, .beam = 1}, on_cpu());
  for (int64_t i = 0; i < 180; ++i) ASSERT_GE(many.ids()[i], 0);
  const Neighbors all = index.search(queries, {.k = rows.rows + 5}, on_cpu());
  EXPECT_GE(all.ids(0)[rows.rows - 1], 0);
  EXPECT_EQ(all.ids(0)[rows.rows], -1);
}

TEST(GraphIndex, ProductsOfTheLargestFloats) {
  auto data = make_floats(Shape::gaussian, 5000, 8, 1);
  for (int64_t i = 0; i < 100; ++i) data.values[static_cast<size_t>(i * 8)] = i % 2 == 0 ? 3e38F : -3e38F;
  const Index index = graph_of(data.view(), "Graph16", Metric::inner_product);
  const MatrixView queries = data.view().slice(200, 20);
  const Neighbors found = index.search(queries, {.k = 5}, on_cpu());
  for (int64_t q = 0; q < 20; ++q) EXPECT_GE(found.ids(q)[0], 0);
}

TEST(GraphIndex, AFileAnswersAsBefore) {
  const auto rows = reference::make_kind("low_rank_24", walked_rows(), 1);
  const MatrixView queries = rows.view().slice(0, 40);
  const std::string path = (std::filesystem::temp_directory_path() / "kith_graph_index_test.kith").string();
  for (const char* const factory : {"Graph16", "Graph32,SQ8", "Graph16,SQfp16", "PCA8,Graph16", "Graph16,RFlat"}) {
    SCOPED_TRACE(factory);
    Index index = graph_of(rows.view(), factory);
    index.add(queries, Ownership::copy, on_cpu());
    index.save(path, on_cpu());
    const Index loaded = Index::load(path, on_cpu());
    EXPECT_EQ(loaded.info().beam, index.info().beam);
    EXPECT_EQ(loaded.info().recalls, index.info().recalls);
    EXPECT_EQ(loaded.info().unlinked, 40);
    EXPECT_EQ(loaded.info().clipped, index.info().clipped);
    expect_same(index.search(queries, {}, on_cpu()), loaded.search(queries, {}, on_cpu()));
    expect_same(index.search(queries, {.k = 3, .refine = 2, .beam = 9, .width = 4}, on_cpu()),
                loaded.search(queries, {.k = 3, .refine = 2, .beam = 9, .width = 4}, on_cpu()));
  }
  const Index byl1 = graph_of(rows.view(), "Graph16", Metric::l1);
  byl1.save(path, on_cpu());
  expect_same(byl1.search(queries, {}, on_cpu()), Index::load(path, on_cpu()).search(queries, {}, on_cpu()));
  std::remove(path.c_str());
}

TEST(GraphIndex, KeepsCodesBehindIt) {
  const auto rows = reference::make_kind("low_rank_24", walked_rows(), 1);
  const MatrixView queries = rows.view().slice(0, 40);
  for (const char* const factory : {"Graph16,SQ8", "Graph16,SQfp16", "Graph16,Flat"}) {
    SCOPED_TRACE(factory);
    const Index index = graph_of(rows.view(), factory);
    EXPECT_GE(recall_of(index, index.search(queries, {.k = 1, .beam = 60}, on_cpu()), queries, rows.view()),
              factory == std::string("Graph16,Flat") ? 0.9 : 0.0);
    // Exact search, and a walk, tell the same distance of the same vector.
    const Neighbors walked = index.search(queries, {.k = 1, .beam = 60}, on_cpu());
    const Neighbors exact = index.search(queries, {.k = 1, .recall = 1}, on_cpu());
    int64_t same = 0;
    for (int64_t q = 0; q < 40; ++q) {
      if (walked.ids(q)[0] != exact.ids(q)[0]) continue;
      ++same;
      ASSERT_EQ(walked.distances(q)[0], exact.distances(q)[0]);
    }
    EXPECT_GE(same, 36);
  }
}

TEST(GraphIndex, RangesAreExact) {
  const auto rows = reference::make_kind("low_rank_24", walked_rows(), 1);
  const MatrixView queries = rows.view().slice(0, 10);
  const Index index = graph_of(rows.view());
  const Neighbors near = knn(queries, rows.view(), {.k = 30}, on_cpu());
  const float radius = near.distances(0)[29];
  const RangeNeighbors found = index.range_search(queries, {.radius = radius}, on_cpu());
  const RangeNeighbors expected = kith::range_search(queries, rows.view(), {.radius = radius}, on_cpu());
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(std::memcmp(found.ids(), expected.ids(), static_cast<size_t>(found.size()) * sizeof(int64_t)), 0);
}

TEST(GraphIndex, MergesAndReconstructs) {
  const auto rows = reference::make_kind("low_rank_24", walked_rows(), 1);
  Index one = graph_of(rows.view().slice(0, walked_rows() / 2));
  const Index two = graph_of(rows.view().slice(walked_rows() / 2, walked_rows() / 2));
  one.merge(two, {.shift_ids = true}, on_cpu());
  EXPECT_EQ(one.size(), walked_rows());
  expect_same(one.search(rows.view().slice(0, 20), {.beam = 30}, on_cpu()),
              graph_of(rows.view()).search(rows.view().slice(0, 20), {.beam = 30}, on_cpu()));
  const std::vector<float> row = reconstructed(one, {walked_rows() - 1});
  EXPECT_EQ(std::memcmp(row.data(), rows.row(walked_rows() - 1), row.size() * sizeof(float)), 0);
  Index flat("Flat");
  flat.add(rows.view(), Ownership::copy, on_cpu());
  EXPECT_THROW(one.merge(flat, {.shift_ids = true}, on_cpu()), InvalidArgument);
}

TEST(GraphIndex, AMemoryLimitThatIsNamedDoes) {
  const auto rows = reference::make_kind("low_rank_24", 6000, 1);
  const auto add_within = [&](int64_t limit) {
    Index index("Graph16");
    index.add(rows.view(), Ownership::copy, on_cpu(limit));
    return index;
  };
  int64_t needed = 0;
  try {
    add_within(1 << 20);
  } catch (const OutOfMemory& error) {
    needed = error.bytes_needed();
  }
  ASSERT_GT(needed, 1 << 20);
  const Index index = add_within(needed);
  const Index free = graph_of(rows.view());
  const Neighbors expected = free.search(rows.view().slice(0, 30), {}, on_cpu());
  int64_t for_search = 0;
  try {
    (void)free.search(rows.view().slice(0, 30), {}, on_cpu(1000));
  } catch (const OutOfMemory& error) {
    for_search = error.bytes_needed();
  }
  ASSERT_GT(for_search, 1000);
  expect_same(expected, free.search(rows.view().slice(0, 30), {}, on_cpu(for_search)));
  expect_same(expected, index.search(rows.view().slice(0, 30), {}, on_cpu()));
}

TEST(GraphIndex, RefusesWhatItCannotDo) {
  const auto rows = make_floats(Shape::gaussian, 5000, 4, 1);
  const Index index = graph_of(rows.view());
  const MatrixView query = rows.view().slice(0, 1);
  for (const char* const wrong :
       {"Graph", "Graph8", "Graph33", "Graph144", "Graph32,PQ2", "Graph32,IVF4,Flat", "IVF4,Graph32"}) {
    EXPECT_THROW((void)Index(wrong), InvalidArgument) << wrong;
  }
  EXPECT_THAT(message_of([] { (void)Index("HNSW32"); }), ::testing::HasSubstr("Graph64"));
  const auto search = [&](const SearchParams& params) {
    return [&index, &query, params] { (void)index.search(query, params, on_cpu()); };
  };
  EXPECT_THAT(message_of(search({.beam = -1})), ::testing::HasSubstr("from 1"));
  EXPECT_THAT(message_of(search({.width = 65})), ::testing::HasSubstr("64"));
  EXPECT_THAT(message_of(search({.recall = 1.5})), ::testing::HasSubstr("at most 1"));
  EXPECT_THAT(message_of(search({.beam = 3, .recall = 0.5})), ::testing::HasSubstr("one of them"));
  if (cuda_devices().empty()) {
    EXPECT_THROW((void)index.search(query, {}, on_cpu().with_device(Device::cuda(0))), Error);
  }
  Index flat("Flat");
  flat.add(rows.view(), Ownership::copy, on_cpu());
  EXPECT_THAT(message_of([&] { (void)flat.search(query, {.beam = 10}, on_cpu()); }), ::testing::HasSubstr("Graph"));
  auto nan = make_floats(Shape::gaussian, 1, 4, 1);
  nan.row(0)[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW((void)index.search(nan.view(), {}, on_cpu()), InvalidArgument);
}

TEST(GraphIndex, FaissHasNoFileForIt) {
  const auto rows = make_floats(Shape::gaussian, 5000, 4, 1);
  const Index index = graph_of(rows.view());
  const std::string path = (std::filesystem::temp_directory_path() / "kith_graph_index_test.faiss").string();
  EXPECT_THAT(message_of([&] { write_faiss_index(index, path, on_cpu()); }), ::testing::HasSubstr("graph"));
}

TEST(GraphIndex, WideVectors) {
  const int64_t cols = reference::fewer_if_sanitized(2048, 256);
  const auto points = make_floats(Shape::gaussian, 4200, 12, 1);
  const auto basis = make_floats(Shape::gaussian, 12, cols, 2);
  Matrix<float> rows(4200, cols);
  for (int64_t i = 0; i < 4200; ++i) {
    for (int64_t j = 0; j < 12; ++j) {
      for (int64_t c = 0; c < cols; ++c) rows.row(i)[c] += points.row(i)[j] * basis.row(j)[c];
    }
  }
  const Index index = graph_of(rows.view());
  EXPECT_EQ(index.info().lost, 0);
  const MatrixView queries = rows.view().slice(0, 10);
  EXPECT_GE(recall_of(index, index.search(queries, {.beam = 40}, on_cpu()), queries, rows.view()), 0.95);
}

TEST(GraphPlan, ExactWhereItCostsNoMoreAndTheBeamGrowsWithTheFilter) {
  const GraphShape bytes{.degree = 32, .row_bytes = 128};
  GraphSearch search{.k = 10, .beam = 32, .rows = 1000000, .kept = 1000000, .graph = bytes};
  EXPECT_FALSE(plan_graph_search(search).exact);
  EXPECT_EQ(plan_graph_search(search).walk.beam, 32);
  EXPECT_EQ(plan_graph_search(search).walk.kept, 0);
  EXPECT_EQ(plan_graph_search(search).candidates, 40);
  search.kept = 100000;
  EXPECT_EQ(plan_graph_search(search).walk.beam, 320);
  EXPECT_EQ(plan_graph_search(search).fewest_kept, 16);
  EXPECT_EQ(plan_graph_search(search).walk.kept, 40);
  EXPECT_GE(widest_walk(search).beam, 320);
  // Exact search of 100,000 kept rows costs as much as a beam of 781.
  EXPECT_TRUE(wider_plan(plan_graph_search(search), search.kept, bytes).exact);
  search.kept = 900000;
  const GraphPlan wider = wider_plan(plan_graph_search(search), search.kept, bytes);
  EXPECT_FALSE(wider.exact);
  EXPECT_EQ(wider.walk.beam, 4 * 36);
  EXPECT_EQ(wider.fewest_kept, 16);
  EXPECT_TRUE(wider_plan(wider_plan(wider_plan(wider, 900000, bytes), 900000, bytes), 900000, bytes).exact);
  search.kept = 60000;
  EXPECT_TRUE(plan_graph_search(search).exact);
  search.kept = 0;
  EXPECT_TRUE(plan_graph_search(search).exact);
  search = {.k = 10, .beam = 32, .rows = 4096, .kept = 4096, .graph = bytes};
  EXPECT_TRUE(plan_graph_search(search).exact);
}

// The more bytes a row has, the more a walk saves: it reads codes of one byte for each column.
TEST(GraphPlan, WalksGoFurtherWhereRowsHaveMoreBytes) {
  const auto widest_walked = [](int64_t rows, int64_t row_bytes) {
    GraphSearch search{.k = 10, .rows = rows, .kept = rows, .graph = {.degree = 32, .row_bytes = row_bytes}};
    for (search.beam = 1; !plan_graph_search(search).exact; ++search.beam) {
    }
    return search.beam - 1;
  };
  EXPECT_EQ(widest_walked(40000, 128), 312);
  EXPECT_EQ(widest_walked(40000, 200), 400);
  EXPECT_EQ(widest_walked(40000, 400), 644);
  EXPECT_EQ(widest_walked(40000, 4 * 768), 3906);
  EXPECT_EQ(widest_walked(80000, 200), 800);
}

TEST(BeamTable, DefaultIsNarrowWithNearlyAllElseTheLeastWithItsRecall) {
  const auto default_of = [](std::vector<BeamRecall> measured) { return BeamTable(std::move(measured)).default_beam(); };
  EXPECT_EQ(default_of({{16, 0.9}, {24, 0.96}, {32, 0.985}, {48, 0.995}}), 32);
  EXPECT_EQ(default_of({{16, 0.9}, {24, 0.96}, {32, 0.97}, {48, 0.98}}), 48);
  EXPECT_EQ(default_of({{16, 0.9}, {24, 0.96}, {48, 0.979}, {64, 0.99}}), 24);
  EXPECT_EQ(default_of({{48, 0.94}, {64, 0.96}, {96, 0.99}}), 64);
  EXPECT_EQ(default_of({{16, 0.5}, {1024, 0.94}}), 1024);
  EXPECT_EQ(default_of({{16, 1.0}}), 16);
  EXPECT_EQ(BeamTable().default_beam(), 0);
}

}  // namespace
}  // namespace kith
