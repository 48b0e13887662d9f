// A mapped segment is searched where it lies; its copy for searches comes with the sixteenth query, and changes nothing.
#include <kith/collection.hpp>

#include "collection/search_cases.hpp"
#include "collection/segment.hpp"
#include "io/temporary_directory.hpp"

#include <gtest/gtest.h>

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
