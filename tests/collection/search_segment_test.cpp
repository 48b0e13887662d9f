// A mapped segment is searched where it lies; its copy for searches comes with the sixteenth query, and changes nothing.
#include <kith/collection.hpp>

#include "collection/search_cases.hpp"
#include "collection/segment.hpp"
#include "io/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace kith {
namespace {

using namespace kith::testing;

TEST(SearchOfSegments, ACopyComesWithManyQueries) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("c");
  (void)case_collection(path, 1000, 30);
  const Collection c = Collection::open(path, {.mode = OpenMode::read});
  const auto folder = std::make_shared<CollectionDirectory>(path, CollectionEnvironment(), false);
  const SegmentRow row = folder->reading([](Database& db) { return read_segments(db).front(); });
  const auto file = std::make_shared<const SegmentFile>(real_disk(), folder->segments(), row, c.params(), true);
  const Segment segment(folder, file, Metric::sqeuclidean);
  const Resources cpu = Resources().with_device(Device::cpu());
  EXPECT_EQ(segment.flat(1, cpu), nullptr);
  EXPECT_EQ(segment.flat(14, cpu), nullptr);
  EXPECT_EQ(segment.flat(0, cpu), nullptr);
  EXPECT_NE(segment.flat(1, cpu), nullptr);
  EXPECT_NE(segment.flat(0, cpu), nullptr);
}

TEST(SearchOfSegments, EveryQueryFindsTheSame) {
  const TemporaryDirectory directory;
  (void)case_collection(directory.path("c"), 1000, 30);
  const Collection c = Collection::open(directory.path("c"), {.mode = OpenMode::read});
  const std::vector<float> query = case_rows(1, 8);
  const CollectionNeighbors first = c.search(case_view(query));
  for (int i = 0; i < 20; ++i) {
    const CollectionNeighbors found = c.search(case_view(query));
    ASSERT_TRUE(std::equal(first.neighbors.ids(), first.neighbors.ids() + 10, found.neighbors.ids()));
    ASSERT_TRUE(std::equal(first.neighbors.distances(), first.neighbors.distances() + 10, found.neighbors.distances()));
  }
}

// Once segments have their copies they are searched as one; their sizes are no multiples of eight, and many distances equal.
TEST(SearchOfSegments, AreSearchedAsOne) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("c");
  Collection written = case_collection(path, 1003, 40, "Flat", IdType::text);
  written.fold();
  const std::vector<float> newest = case_rows(50, 7);
  Items items;
  items.vectors = case_view(newest);
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) names.push_back("new " + std::to_string(i));
  items.ids = names;
  items.columns = {{"tenant", std::vector<ColumnValue>(50, int64_t{7})}};
  written.add(items);
  ASSERT_EQ(written.info().segments.size(), 3U);
  const std::vector<float> queries = case_rows(12, 8);
  std::vector<ItemFilter> filters(7);
  filters[1].where = "tenant = 7";                 // a list
  filters[2].where = "tenant < 30";                // bits
  filters[3].where = "id in ('item 5', 'item 900', 'item 2000', 'new 3')";
  filters[4].where = "id < 'item 2'";              // all of no segment
  filters[5].where = "tenant < 30 or id >= 'item 1900'";
  filters[6].where = "false";
  for (const ItemFilter& filter : filters) {
    SCOPED_TRACE(filter.where);
    CollectionSearchParams params;
    params.search.k = 60;
    params.filter = filter;
    const auto search = [&](const Collection& c) { return c.search(case_view(queries), params); };
    const CollectionNeighbors each = search(Collection::open(path, {.mode = OpenMode::read}));  // too few queries for copies
    const Collection c = Collection::open(path, {.mode = OpenMode::read});
    for (int i = 0; i < 3; ++i) (void)c.search(case_view(queries));
    const CollectionNeighbors as_one = search(c);
    EXPECT_EQ(each.texts, as_one.texts);
    EXPECT_TRUE(std::equal(each.neighbors.ids(), each.neighbors.ids() + 12 * 60, as_one.neighbors.ids()));
    EXPECT_TRUE(std::equal(each.neighbors.distances(), each.neighbors.distances() + 12 * 60, as_one.neighbors.distances()));
  }
}

TEST(SearchOfSegments, CompactionKeepsTheOrderOfRows) {
  const TemporaryDirectory directory;
  Collection c = case_collection(directory.path("c"), 500, 30, "Flat", IdType::text);
  const std::vector<float> queries = case_rows(20, 8);
  const ItemIds ids = c.ids();
  const CollectionNeighbors before = c.search(case_view(queries));
  c.compact();
  EXPECT_EQ(c.ids(), ids);
  EXPECT_EQ(c.info().segments.size(), 1U);
  EXPECT_EQ(c.search(case_view(queries)).texts, before.texts);
  EXPECT_TRUE(c.verify().sound());
}

}  // namespace
}  // namespace kith
