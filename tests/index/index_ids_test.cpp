// Ids, removal and reconstruction through Index, on the kind that is simplest to check.
#include <kith/error.hpp>
#include <kith/index.hpp>

#include "index/index_check.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

std::vector<int64_t> some_ids(int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back((i * 7919 + 13) % 1000003 + (int64_t{1} << 40));
  return ids;
}

TEST(IndexIds, FoundRowsHaveTheCallersIds) {
  const auto base = make_floats(Shape::gaussian, 300, 8, 1);
  const auto queries = make_floats(Shape::gaussian, 9, 8, 2);
  const std::vector<int64_t> ids = some_ids(300);
  Index index("Flat");
  for (int64_t at = 0; at < 300; at += 60) {
    index.add(base.view().slice(at, 60), {ids.data() + at, 60, {}}, Ownership::copy, on_cpu());
  }
  const Neighbors rows = knn(queries.view(), base.view(), {.k = 7}, on_cpu());
  const Neighbors found = index.search(queries.view(), {.k = 7}, on_cpu());
  for (int64_t i = 0; i < 9 * 7; ++i) EXPECT_EQ(found.ids()[i], ids[static_cast<size_t>(rows.ids()[i])]);
  EXPECT_EQ(std::memcmp(found.distances(), rows.distances(), 9 * 7 * sizeof(float)), 0);
  const RangeNeighbors near = range_search(queries.view(), base.view(), {.radius = 3}, on_cpu());
  const RangeNeighbors in_range = index.range_search(queries.view(), {.radius = 3}, on_cpu());
  ASSERT_EQ(in_range.size(), near.size());
  ASSERT_GT(near.size(), 0);
  for (int64_t i = 0; i < near.size(); ++i) EXPECT_EQ(in_range.ids()[i], ids[static_cast<size_t>(near.ids()[i])]);
}

TEST(IndexIds, AListNamesIdsAndAMaskTheRowsThatAreThere) {
  const auto base = make_floats(Shape::gaussian, 50, 4, 1);
  const std::vector<int64_t> ids = some_ids(50);
  Index index("Flat");
  index.add(base.view(), view(ids), Ownership::copy, on_cpu());
  const int64_t listed[] = {ids[7], ids[31]};
  const Neighbors found = index.search(base.view(), {.k = 3, .filter = RowFilter::rows(listed, 2)}, on_cpu());
  for (int64_t q = 0; q < 50; ++q) {
    EXPECT_THAT(std::vector<int64_t>(found.ids(q), found.ids(q) + 3),
                ::testing::UnorderedElementsAre(ids[7], ids[31], -1));
  }
  const int64_t gone[] = {ids[0], ids[1]};
  EXPECT_EQ(index.remove({gone, 2, {}}, on_cpu()), 2);
  std::vector<uint8_t> mask(48, 0);
  mask[5] = 1;  // the row that was number 7
  const Neighbors masked =
      index.search(base.view().slice(0, 1), {.k = 2, .filter = RowFilter::mask(mask.data(), 48)}, on_cpu());
  EXPECT_EQ(masked.ids()[0], ids[7]);
  EXPECT_EQ(masked.ids()[1], -1);
}

// Ids of the caller's own, numbers that the index gave, and rows that were removed.
TEST(IndexIds, UnknownIdsInAFilterArePassedOverUnlessItIsStrict) {
  const auto base = make_floats(Shape::gaussian, 50, 4, 1);
  for (const char* const factory : {"Flat", "IVF4,Flat", "SQ8", "Flat,RFlat"}) {
    for (const bool own : {false, true}) {
      for (const bool removed : {false, true}) {
        SCOPED_TRACE(std::string(factory) + (own ? ", own ids" : "") + (removed ? ", removed rows" : ""));
        Index index(factory);
        index.train(base.view(), on_cpu());
        std::vector<int64_t> ids = some_ids(50);
        for (int64_t i = 0; i < 50 && !own; ++i) ids[static_cast<size_t>(i)] = i;
        index.add(base.view(), view(ids), Ownership::copy, on_cpu());
        const int64_t gone[] = {ids[0], ids[1]};
        if (removed) index.remove({gone, 2, {}}, on_cpu());
        const int64_t none = removed ? ids[0] : 999;
        const int64_t listed[] = {ids[7], none, -5, ids[31], int64_t{1} << 60};
        const RowFilter filter = RowFilter::rows(listed, 5);
        const Neighbors found = index.search(base.view(), {.k = 3, .filter = filter}, on_cpu());
        for (int64_t q = 0; q < 50; ++q) {
          ASSERT_THAT(std::vector<int64_t>(found.ids(q), found.ids(q) + 3),
                      ::testing::UnorderedElementsAre(ids[7], ids[31], -1));
        }
        const RangeNeighbors near = index.range_search(base.view(), {.radius = 1e9f, .filter = filter}, on_cpu());
        EXPECT_EQ(near.size(), 100);
        const RowFilter all_unknown = RowFilter::rows(listed + 1, 2);
        EXPECT_EQ(index.search(base.view(), {.k = 1, .filter = all_unknown}, on_cpu()).ids()[0], -1);
        const auto refused = [&](const auto& search) {
          try {
            search();
            FAIL();
          } catch (const InvalidArgument& error) {
            EXPECT_THAT(error.what(),
                        ::testing::HasSubstr(std::to_string(none) + " at position 1 is not in the index"));
          }
        };
        refused([&] { (void)index.search(base.view(), {.k = 1, .filter = filter, .filter_strict = true}, on_cpu()); });
        refused([&] {
          (void)index.range_search(base.view(), {.radius = 1, .filter = filter, .filter_strict = true}, on_cpu());
        });
      }
    }
  }
}

TEST(IndexIds, AFilterOfAnEmptyIndexNamesUnknownIds) {
  const auto queries = make_floats(Shape::gaussian, 2, 4, 1);
  const Index index("Flat");
  const int64_t listed[] = {3};
  const RowFilter filter = RowFilter::rows(listed, 1);
  EXPECT_EQ(index.search(queries.view(), {.k = 1, .filter = filter}, on_cpu()).ids()[0], -1);
  EXPECT_EQ(index.range_search(queries.view(), {.radius = 1, .filter = filter}, on_cpu()).size(), 0);
  EXPECT_THROW((void)index.search(queries.view(), {.k = 1, .filter = filter, .filter_strict = true}, on_cpu()),
               InvalidArgument);
}

TEST(IndexIds, ACloneGoesItsOwnWay) {
  const auto base = make_floats(Shape::gaussian, 60, 4, 1);
  Index index("Flat");
  EXPECT_EQ(index.clone(on_cpu()).size(), 0);
  index.add(base.view().slice(0, 40), Ownership::copy, on_cpu());
  Index other = index.clone(on_cpu());
  EXPECT_EQ(other.runs_on(), index.runs_on());
  EXPECT_EQ(other.factory(), "Flat");
  const int64_t gone[] = {3};
  EXPECT_EQ(other.remove({gone, 1, {}}, on_cpu()), 1);
  index.add(base.view().slice(40, 20), Ownership::copy, on_cpu());
  EXPECT_EQ(index.size(), 60);
  EXPECT_EQ(other.size(), 39);
  EXPECT_EQ(index.search(base.view().slice(3, 1), {.k = 1}, on_cpu()).ids()[0], 3);
  EXPECT_NE(other.search(base.view().slice(3, 1), {.k = 1}, on_cpu()).ids()[0], 3);
}

TEST(IndexIds, WhatIsLeftIsFoundAsBefore) {
  for (const bool borrow : {false, true}) {
    const auto base = make_bytes(200, 16, 3);
    Index index("Flat", {.metric = Metric::sqeuclidean});
    index.add(base.view().slice(0, 120), borrow ? Ownership::borrow : Ownership::copy, on_cpu());
    index.add(base.view().slice(120, 80), borrow ? Ownership::borrow : Ownership::copy, on_cpu());
    std::vector<int64_t> gone;
    for (int64_t id = 0; id < 200; id += 3) gone.push_back(id);
    EXPECT_EQ(index.remove(view(gone), on_cpu()), 67);
    EXPECT_EQ(index.remove(view(gone), on_cpu()), 0);
    EXPECT_EQ(index.size(), 133);
    std::vector<uint8_t> left(200, 1);
    for (const int64_t id : gone) left[static_cast<size_t>(id)] = 0;
    const RowFilter kept = RowFilter::mask(left.data(), 200);
    const Neighbors rows =
        knn(base.view(), base.view(), {.k = 5, .metric = Metric::sqeuclidean, .filter = kept}, on_cpu());
    const Neighbors found = index.search(base.view(), {.k = 5}, on_cpu());
    EXPECT_EQ(std::memcmp(found.ids(), rows.ids(), 200 * 5 * sizeof(int64_t)), 0);
    EXPECT_EQ(std::memcmp(found.distances(), rows.distances(), 200 * 5 * sizeof(float)), 0);
  }
}

TEST(IndexIds, AllRowsMayGoAndOthersCome) {
  const auto base = make_floats(Shape::gaussian, 10, 4, 1);
  Index index("Flat");
  index.add(base.view(), Ownership::copy, on_cpu());
  std::vector<int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(index.remove(view(all), on_cpu()), 10);
  EXPECT_EQ(index.size(), 0);
  EXPECT_EQ(index.dimension(), 4);
  EXPECT_EQ(index.search(base.view(), {.k = 2}, on_cpu()).ids()[0], -1);
  EXPECT_EQ(index.range_search(base.view(), {.radius = 9}, on_cpu()).size(), 0);
  index.add(base.view().slice(0, 2), Ownership::copy, on_cpu());
  EXPECT_EQ(index.search(base.view().slice(1, 1), {.k = 1}, on_cpu()).ids()[0], 11);
}

TEST(IndexIds, ARefusedAddLeavesEverythingAsItWas) {
  const auto base = make_floats(Shape::gaussian, 10, 4, 1);
  Index index("Flat");
  const std::vector<int64_t> ids = {4, 8, 1, 0, 3, 9, 2, 6, 5, 7};
  index.add(base.view(), view(ids), Ownership::copy, on_cpu());
  const std::vector<int64_t> twice = {10, 8};
  EXPECT_THROW(index.add(base.view().slice(0, 2), view(twice), Ownership::copy, on_cpu()), InvalidArgument);
  EXPECT_THROW(index.add(base.view().slice(0, 3), view(twice), Ownership::copy, on_cpu()), InvalidArgument);
  EXPECT_EQ(index.size(), 10);
  index.add(base.view().slice(0, 1), Ownership::copy, on_cpu());
  EXPECT_EQ(index.search(base.view().slice(0, 1), {.k = 2}, on_cpu()).ids()[1], 10);
}

TEST(IndexIds, VectorsComeBackByTheirIds) {
  const auto base = make_bytes(30, 6, 3);
  const std::vector<int64_t> ids = some_ids(30);
  Index index("Flat");
  index.add(base.view().slice(0, 20), {ids.data(), 20, {}}, Ownership::copy, on_cpu());
  index.add(base.view().slice(20, 10), {ids.data() + 20, 10, {}}, Ownership::copy, on_cpu());
  const std::vector<int64_t> wanted = {ids[25], ids[3], ids[25]};
  std::vector<float> out(3 * 6);
  index.reconstruct(view(wanted), MutableMatrixView(out.data(), 3, 6), on_cpu());
  const int64_t rows[] = {25, 3, 25};
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t col = 0; col < 6; ++col) {
      EXPECT_EQ(out[static_cast<size_t>(i * 6 + col)], static_cast<float>(base.row(rows[i])[col]));
    }
  }
  const std::vector<int64_t> unknown = {3};
  EXPECT_THROW(index.reconstruct(view(unknown), MutableMatrixView(out.data(), 1, 6), on_cpu()), InvalidArgument);
  EXPECT_THROW(index.reconstruct(view(wanted), MutableMatrixView(out.data(), 2, 6), on_cpu()), InvalidArgument);
}

std::vector<int64_t> ids_in(const Index& index) {
  const HostBuffer ids = index.ids(on_cpu());
  return {ids.as<int64_t>(), ids.as<int64_t>() + ids.bytes() / 8};
}

TEST(IndexIds, AreToldInTheOrderOfAdd) {
  const auto base = make_floats(Shape::gaussian, 6, 4, 1);
  Index index("Flat");
  EXPECT_TRUE(ids_in(index).empty());
  EXPECT_FALSE(index.contains(0));
  index.add(base.view().slice(0, 3), Ownership::copy, on_cpu());
  EXPECT_EQ(ids_in(index), (std::vector<int64_t>{0, 1, 2}));
  const std::vector<int64_t> own = {70, 5};
  index.add(base.view().slice(3, 2), view(own), Ownership::copy, on_cpu());
  const std::vector<int64_t> gone = {1};
  index.remove(view(gone), on_cpu());
  EXPECT_EQ(ids_in(index), (std::vector<int64_t>{0, 2, 70, 5}));
  EXPECT_TRUE(index.contains(70) && index.contains(0));
  EXPECT_FALSE(index.contains(1) || index.contains(-1) || index.contains(71));
}

TEST(IndexIds, ReplacedVectorsAreFoundOnceAndAsTheyAreNow) {
  const auto base = make_floats(Shape::gaussian, 400, 8, 1);
  const auto fresh = make_floats(Shape::gaussian, 400, 8, 2);
  for (const char* const factory : {"Flat", "IVF4,SQ8", "Graph16", "PQ4,RFlat", "PCA4,SQ8"}) {
    SCOPED_TRACE(factory);
    const auto made = [&] {
      Index index(factory);
      index.train(base.view(), on_cpu());
      return index;
    };
    Index index = made();
    const std::vector<int64_t> ids = some_ids(400);
    index.add(base.view().slice(0, 300), {ids.data(), 300, {}}, Ownership::copy, on_cpu());
    // 100 that are there, 100 that are not.
    EXPECT_EQ(index.replace(fresh.view().slice(200, 200), {ids.data() + 200, 200, {}}, on_cpu()), 100);
    EXPECT_EQ(index.size(), 400);
    Index other = made();
    other.add(base.view().slice(0, 200), {ids.data(), 200, {}}, Ownership::copy, on_cpu());
    other.add(fresh.view().slice(200, 200), {ids.data() + 200, 200, {}}, Ownership::copy, on_cpu());
    EXPECT_EQ(ids_in(index), ids_in(other));
    const Neighbors found = index.search(fresh.view(), taken_by(index, {.k = 5, .probes = 4}), on_cpu());
    const Neighbors wanted = other.search(fresh.view(), taken_by(other, {.k = 5, .probes = 4}), on_cpu());
    EXPECT_EQ(std::memcmp(found.ids(), wanted.ids(), 400 * 5 * sizeof(int64_t)), 0);
    EXPECT_EQ(std::memcmp(found.distances(), wanted.distances(), 400 * 5 * sizeof(float)), 0);
  }
}

TEST(IndexIds, ARefusedReplacementLeavesEverythingAsItWas) {
  const auto base = make_floats(Shape::gaussian, 10, 4, 1);
  Index index("Flat");
  index.add(base.view(), Ownership::copy, on_cpu());
  const std::vector<int64_t> twice = {3, 3};
  EXPECT_THROW(index.replace(base.view().slice(0, 2), view(twice), on_cpu()), InvalidArgument);
  const std::vector<int64_t> negative = {-1};
  EXPECT_THROW(index.replace(base.view().slice(0, 1), view(negative), on_cpu()), InvalidArgument);
  EXPECT_THROW(index.replace(base.view().slice(0, 1), VectorView<const int64_t>(), on_cpu()), InvalidArgument);
  EXPECT_EQ(index.size(), 10);
  EXPECT_EQ(index.search(base.view().slice(3, 1), {.k = 1}, on_cpu()).ids()[0], 3);
}

TEST(IndexIds, ManyReplacementsDoNotGrowAnIndex) {
  const auto base = make_floats(Shape::gaussian, 100, 16, 1);
  Index index("Flat");
  index.add(base.view(), Ownership::copy, on_cpu());
  const int64_t bytes = index.bytes().host;
  for (int64_t i = 0; i < 300; ++i) {
    const int64_t id = i % 100;
    EXPECT_EQ(index.replace(base.view().slice(99 - id, 1), {&id, 1, {}}, on_cpu()), 1);
  }
  EXPECT_EQ(index.size(), 100);
  EXPECT_LT(index.bytes().host, 2 * bytes + 4096);
  for (int64_t id = 0; id < 100; ++id) {
    EXPECT_EQ(index.search(base.view().slice(99 - id, 1), {.k = 1}, on_cpu()).ids()[0], id);
  }
}

}  // namespace
}  // namespace kith
