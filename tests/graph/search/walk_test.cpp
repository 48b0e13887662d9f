// Walks are those of the slow reference, byte for byte: every metric and dtype, beam and width, a tail,
// batches and threads; and the graph is the same whatever the threads.
#include "graph/search/walk/walk.hpp"

#include "core/typed_row.hpp"
#include "graph/search/build/build_walk_graph.hpp"
#include "graph/search/walk/walk_search.hpp"
#include "index/index_check.hpp"
#include "reference/data.hpp"
#include "reference/sanitized.hpp"
#include "reference/walk.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

using Found = std::vector<std::pair<uint32_t, uint32_t>>;

Found found_in(const Beam& beam) {
  Found found;
  for (int64_t i = 0; i < beam.size(); ++i) found.emplace_back(beam.key(i), beam.place(i));
  return found;
}

// The key of a row with a query, one column after the other.
uint32_t slow_key(const WalkRows& rows, const WalkQuery& query, int64_t place) {
  if (rows.kind == WalkKind::canonical) {
    uint32_t key = 0;
    const auto number = static_cast<uint32_t>(place);
    walk_keys(rows, query, &number, 1, &key);
    return key;
  }
  int64_t sum = 0;
  const auto* const code = typed_row<int8_t>(rows.values, place);
  for (int64_t c = 0; c < rows.values.cols(); ++c) {
    const int64_t b = query.code.words[c];
    sum += rows.kind == WalkKind::squares ? (b - code[c]) * (b - code[c]) : -b * code[c];
  }
  return static_cast<uint32_t>(static_cast<int32_t>(sum)) ^ 0x80000000U;
}

struct Walked {
  std::shared_ptr<const WalkGraph> graph;
  HostArray<std::byte> tail;
  WalkView view;
};

Walked built(const MatrixView& rows, Metric metric, int64_t tail_rows, const Resources& resources) {
  Walked made;
  const int64_t count = rows.rows() - tail_rows;
  made.graph = build_walk_graph(rows.slice(0, count), {metric, 16, 3}, resources);
  const WalkCoder& coder = made.graph->coder;
  made.tail = HostArray<std::byte>(tail_rows * coder.place_bytes(), "a tail", resources);
  coder.encode_all(rows.slice(count, tail_rows), made.tail.data(), resources);
  made.view = made.graph->view(made.tail.data(), tail_rows);
  return made;
}

void expect_reference(const MatrixView& rows, const MatrixView& queries, Metric metric, int64_t tail_rows) {
  const Walked walked = built(rows, metric, tail_rows, on_cpu());
  const WalkView& view = walked.view;
  const WalkCoder& coder = walked.graph->coder;
  HostArray<std::byte> memory(WalkCoder::query_bytes(rows.cols()), "a query", on_cpu());
  for (const WalkParams& params : {WalkParams{1, 1}, WalkParams{9, 2}, WalkParams{40, 1}, WalkParams{24, 64}}) {
    Walk walk(params, view.degree, on_cpu());
    for (int64_t q = 0; q < queries.rows(); ++q) {
      const WalkQuery query = coder.query(queries, q, WalkCoder::query_room(memory.data(), rows.cols()));
      walk.run(view, query);
      const auto expected = reference::walk(
          view, params,
          [&](uint32_t place) {
            const bool in_tail = place >= view.rows.count();
            return slow_key(in_tail ? view.tail : view.rows, query, in_tail ? place - view.rows.count() : place);
          },
          [&](uint32_t cell) { return slow_key(view.centres, query, cell); });
      ASSERT_EQ(found_in(walk.beam()), expected);
    }
  }
}

TEST(Walk, IsThatOfTheReferenceForEveryMetric) {
  const int64_t rows = reference::fewer_if_sanitized(1500, 400);
  const auto floats = make_floats(Shape::gaussian, rows, 20, 1);
  const auto queries = make_floats(Shape::gaussian, 6, 20, 2);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1, Metric::linf}) {
    SCOPED_TRACE(name_of(metric));
    expect_reference(floats.view(), queries.view(), metric, 30);
  }
  const auto positive = reference::without_sign(floats);
  expect_reference(positive.view(), reference::without_sign(queries).view(), Metric::chi_square, 0);
}

TEST(Walk, IsThatOfTheReferenceForEveryDtype) {
  const int64_t rows = reference::fewer_if_sanitized(1500, 400);
  const auto floats = make_floats(Shape::gaussian, rows, 33, 3);
  const auto queries = make_floats(Shape::gaussian, 6, 33, 4);
  const auto bytes = reference::make_bytes(rows, 33, 5);
  const auto byte_queries = reference::make_bytes(6, 33, 6);
  expect_reference(reference::stored_as<Half>(floats).view(), queries.view(), Metric::l2, 5);
  expect_reference(reference::stored_as<int8_t>(floats).view(), queries.view(), Metric::sqeuclidean, 5);
  expect_reference(bytes.view(), byte_queries.view(), Metric::l2, 5);
  expect_reference(bytes.view(), byte_queries.view(), Metric::inner_product,
                   5);  // words: bytes do not hold such queries
  expect_reference(bytes.view(), byte_queries.view(), Metric::hamming, 5);
}

TEST(Walk, IsThatOfTheReferenceOnHardRows) {
  const int64_t rows = reference::fewer_if_sanitized(900, 300);
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(name_of(shape));
    const auto data = make_floats(shape, rows, 12, 7);
    const auto far = make_floats(Shape::gaussian, 3, 12, 8);  // of most shapes far outside the rows
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      expect_reference(data.view(), data.view().slice(0, 3), metric, 9);
      expect_reference(data.view(), far.view(), metric, 0);
    }
  }
}

TEST(Walk, BatchesThreadsAndTurnsChangeNothing) {
  const auto rows = make_floats(Shape::gaussian, reference::fewer_if_sanitized(3000, 600), 24, 1);
  const auto queries = make_floats(Shape::gaussian, 70, 24, 2);
  const Walked walked = built(rows.view(), Metric::l2, 10, on_cpu());
  const WalkParams params{20, 2};
  const auto all = [&](int64_t batch, int threads) {
    std::vector<Found> found(70);
    const Resources resources = on_cpu(kNoLimit, threads);
    for (int64_t first = 0; first < 70; first += batch) {
      const int64_t count = std::min<int64_t>(batch, 70 - first);
      WalkSearch search(params, walked.view.degree, WalkCoder::query_bytes(24), count, resources);
      ProgressMeter meter("search", count, resources);
      search.run(
          walked.view, count, meter, resources,
          [&](int64_t q, std::byte* memory) {
            return walked.graph->coder.query(queries.view(), first + q, WalkCoder::query_room(memory, 24));
          },
          [&](int64_t q, const Walk& walk, int) { found[static_cast<size_t>(first + q)] = found_in(walk.beam()); });
    }
    return found;
  };
  const std::vector<Found> expected = all(1, 1);
  for (const int64_t batch : {1, 7, 70}) {
    for (const int threads : {1, 8}) EXPECT_EQ(all(batch, threads), expected);
  }
}

TEST(WalkGraph, ThreadsDoNotChangeAByte) {
  const auto rows = make_floats(Shape::near_duplicates, reference::fewer_if_sanitized(4000, 600), 16, 9);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1}) {
    const auto one = build_walk_graph(rows.view(), {metric, 32, 1}, on_cpu(kNoLimit, 1));
    const auto many = build_walk_graph(rows.view(), {metric, 32, 1}, on_cpu(kNoLimit, 8));
    const auto same = [](const auto& a, const auto& b, int64_t count) {
      return std::memcmp(a.data(), b.data(), static_cast<size_t>(count) * sizeof(a[0])) == 0;
    };
    const int64_t places = one->order.places();
    ASSERT_EQ(many->order.places(), places);
    EXPECT_TRUE(same(one->order.offsets(), many->order.offsets(), places + 1));
    EXPECT_TRUE(same(one->order.rows(), many->order.rows(), one->rows()));
    EXPECT_TRUE(same(one->codes, many->codes, one->codes.size()));
    EXPECT_EQ(std::memcmp(one->edges.flat(), many->edges.flat(), static_cast<size_t>(places * 32) * sizeof(uint32_t)),
              0);
    EXPECT_TRUE(same(one->centres, many->centres, one->centres.size()));
    ASSERT_EQ(one->entries.size(), many->entries.size());
    EXPECT_TRUE(same(one->entries, many->entries, one->entries.size()));
    EXPECT_TRUE(same(one->entry_offsets, many->entry_offsets, one->cells + 1));
  }
}

TEST(WalkGraph, ClustersThatNothingJoinsHaveEntriesAndAreFound) {
  for (const int64_t size : {10, 100, 1000}) {
    SCOPED_TRACE(size);
    const int64_t count = reference::fewer_if_sanitized(6000, 2000);
    auto rows = make_floats(Shape::gaussian, count, 16, 1);
    const auto centres = make_floats(Shape::gaussian, count / size, 16, 2);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t c = 0; c < 16; ++c) rows.row(i)[c] += 30 * centres.row(i / size)[c];
    }
    const auto graph = build_walk_graph(rows.view(), {Metric::l2, 32, 0}, on_cpu());
    EXPECT_EQ(graph->counts.lost, 0);
    if (size == 100) {  // smaller ones are joined by their 64 candidates
      EXPECT_GE(graph->counts.parts, count / size / 2);
    }
  }
}

}  // namespace
}  // namespace kith
