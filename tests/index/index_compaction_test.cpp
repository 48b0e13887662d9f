// Removed rows are marked, and dropped by compaction: before and after it an index is the one that never had them.
#include <kith/error.hpp>
#include <kith/index.hpp>
#include <kith/index_graph.hpp>

#include "core/memory_budget.hpp"
#include "index/index_check.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

constexpr int64_t kCompactedRows = 900;
constexpr int64_t kCols = 16;

void expect_same(const RangeNeighbors& a, const RangeNeighbors& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(a.queries(), b.queries());
  EXPECT_EQ(std::memcmp(a.offsets(), b.offsets(), static_cast<size_t>(a.queries() + 1) * sizeof(int64_t)), 0);
  EXPECT_EQ(std::memcmp(a.ids(), b.ids(), static_cast<size_t>(a.size()) * sizeof(int64_t)), 0);
  EXPECT_EQ(std::memcmp(a.distances(), b.distances(), static_cast<size_t>(a.size()) * sizeof(float)), 0);
}

class CompactedKinds : public ::testing::TestWithParam<const char*> {
 protected:
  Index filled(bool own_ids) const {
    Index index(GetParam());
    index.train(base_.view(), on_cpu());
    std::vector<int64_t> ids = numbers(kCompactedRows);
    if (own_ids) std::transform(ids.begin(), ids.end(), ids.begin(), [](int64_t id) { return (id * 7919) % 10007; });
    for (int64_t at = 0; at < kCompactedRows; at += 300) {
      const VectorView<const int64_t> some{own_ids ? ids.data() + at : nullptr, own_ids ? 300 : 0, {}};
      index.add(base_.view().slice(at, 300), some, Ownership::copy, on_cpu());
    }
    return index;
  }

  // Both hold the same vectors under the same ids, in the same order; `ids` are some of them.
  void expect_alike(const Index& a, const Index& b, const std::vector<int64_t>& ids) const {
    const Resources resources = on_cpu();
    const int64_t rows = a.size();
    ASSERT_EQ(rows, b.size());
    std::vector<uint8_t> mask(static_cast<size_t>(rows));
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 5 != 1;
    std::vector<uint8_t> bits(static_cast<size_t>(rows + 7) / 8, 0xB7);
    const RowFilter filters[] = {{},
                                 RowFilter::mask(mask.data(), rows),
                                 RowFilter::bits(bits.data(), rows),
                                 RowFilter::rows(ids.data(), static_cast<int64_t>(ids.size()))};
    for (const RowFilter& filter : filters) {
      for (const int64_t probes : {int64_t{1}, int64_t{0}, kAll}) {
        for (const int64_t k : {1, 9, 200}) {
          const SearchParams params = taken_by(a, {.k = k, .filter = filter, .probes = probes});
          kith::expect_same(a.search(queries_.view(), params, resources), b.search(queries_.view(), params, resources));
        }
        const float radius =
            b.search(queries_.view(), taken_by(b, {.k = 30, .probes = kAll}), resources).distances(0)[29];
        const RangeSearchParams range = range_taken_by(a, {.radius = radius, .filter = filter, .probes = probes});
        expect_same(a.range_search(queries_.view(), range, resources), b.range_search(queries_.view(), range, resources));
      }
    }
    const std::vector<uint8_t> longer(static_cast<size_t>(rows) + 1, 1);
    EXPECT_THROW((void)a.search(queries_.view(), {.filter = RowFilter::mask(longer.data(), rows + 1)}, resources),
                 InvalidArgument);
    EXPECT_EQ(reconstructed(a, ids), reconstructed(b, ids));
    const IndexInfo first = a.info();
    const IndexInfo second = b.info();
    EXPECT_EQ(first.size, second.size);
    EXPECT_EQ(first.longest, second.longest);
    EXPECT_EQ(first.imbalance, second.imbalance);
    const testing::TemporaryDirectory directory;
    a.save(directory.path("a"), on_cpu());
    b.save(directory.path("b"), on_cpu());
    EXPECT_TRUE(directory.read("a") == directory.read("b"));
  }

  const reference::Matrix<float> base_ = make_floats(Shape::near_duplicates, kCompactedRows, kCols, 1);
  const reference::Matrix<float> queries_ = make_floats(Shape::near_duplicates, 12, kCols, 2);
};

TEST_P(CompactedKinds, MarkedRowsAreAsIfTheyWereDropped) {
  for (const bool own_ids : {false, true}) {
    SCOPED_TRACE(own_ids);
    Index marked = filled(own_ids);
    const auto id_of = [&](int64_t row) { return own_ids ? (row * 7919) % 10007 : row; };
    std::vector<int64_t> gone;
    for (int64_t row = 3; row < kCompactedRows; row += 7) gone.push_back(id_of(row));
    EXPECT_EQ(marked.remove(view(gone), on_cpu()), static_cast<int64_t>(gone.size()));
    EXPECT_EQ(marked.remove(view(gone), on_cpu()), 0);
    const auto dead = static_cast<double>(gone.size()) / kCompactedRows;
    EXPECT_EQ(marked.info().dead, dead);
    Index dropped = marked.to(Device::cpu());
    dropped.compact(on_cpu());
    EXPECT_EQ(dropped.info().dead, 0);
    EXPECT_EQ(marked.info().dead, dead);
    const std::vector<int64_t> some = {id_of(0), id_of(898), id_of(450), id_of(1), id_of(302)};
    expect_alike(marked, dropped, some);
    const testing::TemporaryDirectory directory;
    marked.save(directory.path("marked"), on_cpu());
    expect_alike(marked, Index::load(directory.path("marked"), on_cpu()), some);
    const std::vector<int64_t> unknown = {id_of(0), gone[4]};
    const RowFilter listed = RowFilter::rows(unknown.data(), 2);
    EXPECT_THROW((void)marked.search(queries_.view(), {.filter = listed, .filter_strict = true}, on_cpu()),
                 InvalidArgument);
    EXPECT_THROW((void)reconstructed(marked, {gone[4]}), InvalidArgument);
    // More come, some under ids that were removed; others go.
    for (Index* const index : {&marked, &dropped}) {
      index->add(base_.view().slice(10, 2), view({gone[0], gone[1]}), Ownership::copy, on_cpu());
      index->add(base_.view().slice(40, 30), Ownership::copy, on_cpu());
      EXPECT_EQ(index->remove(view({gone[1], id_of(4)}), on_cpu()), 2);
    }
    EXPECT_GT(marked.info().dead, 0.1);
    expect_alike(marked, dropped, {gone[0], id_of(0), id_of(5)});
    // Both are merged with another that has marked rows too, and the other with them.
    Index other = filled(own_ids);
    other.remove(view({id_of(2)}), on_cpu());
    Index into_marked = other.to(Device::cpu());
    Index into_dropped = other.to(Device::cpu());
    into_marked.merge(marked, {.shift_ids = true}, on_cpu());
    into_dropped.merge(dropped, {.shift_ids = true}, on_cpu());
    expect_alike(into_marked, into_dropped, {id_of(0), id_of(1)});
    marked.merge(other, {.shift_ids = true}, on_cpu());
    dropped.merge(other, {.shift_ids = true}, on_cpu());
    expect_alike(marked, dropped, {id_of(0), id_of(1)});
  }
}

TEST_P(CompactedKinds, AFifthOfDeadRowsIsDroppedWhereThereIsRoom) {
  Index index = filled(false);
  const std::vector<int64_t> first = numbers(179);
  index.remove(view(first), on_cpu());
  EXPECT_NEAR(index.info().dead, 179.0 / 900, 1e-12);
  Index tight = index.to(Device::cpu());
  tight.remove(view({500}), on_cpu(2000));  // marks, but cannot copy what is left
  EXPECT_NEAR(tight.info().dead, 0.2, 1e-12);
  index.remove(view({500}), on_cpu());
  EXPECT_EQ(index.info().dead, 0);
  expect_alike(tight, index, {179, 899});
  const auto error = testing::thrown<OutOfMemory>([&] { tight.compact(on_cpu(2000)); });
  ASSERT_TRUE(error);
  tight.compact(on_cpu(error->bytes_needed()));
  EXPECT_EQ(tight.info().dead, 0);
  index.remove(view(numbers(kCompactedRows)), on_cpu());
  EXPECT_EQ(index.size(), 0);
  EXPECT_EQ(index.info().dead, 0);
}

TEST_P(CompactedKinds, RemovalTakesABitForEachRow) {
  Index index = filled(true);
  const Resources resources = on_cpu(1 << 20);
  const IndexBytes before = index.bytes();
  index.remove(view({0}), resources);
  EXPECT_EQ(index.size(), kCompactedRows - 1);
  EXPECT_LE(resources.host_memory()->used(), kCompactedRows / 8 + 8);
  EXPECT_EQ(index.bytes().host - before.host, resources.host_memory()->used());
}

TEST_P(CompactedKinds, AGraphIsOfTheLiveRows) {
  Index marked = filled(false);
  marked.remove(view(numbers(30, kCompactedRows - 30)), on_cpu());
  Index dropped = marked.to(Device::cpu());
  dropped.compact(on_cpu());
  const MatrixView left = base_.view().slice(0, kCompactedRows - 30);
  const KnnGraph a = knn_graph(marked, left, {.k = 5}, on_cpu());
  const KnnGraph b = knn_graph(dropped, left, {.k = 5}, on_cpu());
  EXPECT_EQ(std::memcmp(a.ids(), b.ids(), static_cast<size_t>(left.rows()) * 5 * 8), 0);
  EXPECT_THROW((void)knn_graph(marked, base_.view(), {.k = 5}, on_cpu()), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(IndexCompaction, CompactedKinds,
                         ::testing::Values("Flat", "IVF12,Flat", "IVF12,PQ4x4", "SQ8", "PCA8,Flat", "Flat,RFlat",
                                           "OPQ4,IVF12,SQ8,RFlat", "IVF12,PQ4,Refine(SQ8)"));

}  // namespace
}  // namespace kith
