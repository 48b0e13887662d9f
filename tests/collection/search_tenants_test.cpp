// Queries with parameters of their own find what a loop over them finds.
#include <kith/collection.hpp>

#include <kith/error.hpp>

#include "collection/search_cases.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace kith {
namespace {

using namespace kith::testing;
using ::testing::HasSubstr;

void expect_is_a_loop(const CollectionView& view, const std::vector<float>& queries, const ItemFilter& filter, int64_t k,
                      const Resources& resources = Resources()) {
  CollectionSearchParams params;
  params.search.k = k;
  params.filter = filter;
  CollectionRangeParams range;
  range.radius = 180;
  range.filter = filter;
  const CollectionNeighbors together = view.search(case_view(queries), params, resources);
  const CollectionRange near = view.range_search(case_view(queries), range, resources);
  int64_t found = 0;
  for (int64_t q = 0; q < case_view(queries).rows(); ++q) {
    CollectionSearchParams alone = params;
    CollectionRangeParams range_alone = range;
    for (ItemFilter* one : {&alone.filter, &range_alone.filter}) {
      one->params = one->params_of_queries[static_cast<size_t>(q)];
      one->params_of_queries.clear();
    }
    const CollectionNeighbors one = view.search(case_view(queries).slice(q, 1), alone, resources);
    for (int64_t i = 0; i < k; ++i) {
      ASSERT_EQ(one.neighbors.ids()[i], together.neighbors.ids(q)[i]) << q << ' ' << i;
      ASSERT_EQ(one.neighbors.distances()[i], together.neighbors.distances(q)[i]) << q << ' ' << i;
      found += one.neighbors.ids()[i] >= 0 ? 1 : 0;
      if (!one.texts.empty()) {
        ASSERT_EQ(one.texts[static_cast<size_t>(i)], together.texts[static_cast<size_t>(q * k + i)]);
      }
    }
    const CollectionRange same = view.range_search(case_view(queries).slice(q, 1), range_alone, resources);
    const RangeView all = near.neighbors.view();
    ASSERT_EQ(same.neighbors.size(), all.offsets[q + 1] - all.offsets[q]);
    for (int64_t i = 0; i < same.neighbors.size(); ++i) {
      ASSERT_EQ(same.neighbors.ids()[i], all.ids[all.offsets[q] + i]);
      ASSERT_EQ(same.neighbors.distances()[i], all.distances[all.offsets[q] + i]);
    }
  }
  EXPECT_GT(found, 0);
}

ItemFilter of_tenants(int64_t queries, int64_t tenants) {
  ItemFilter filter;
  filter.where = "tenant = ?";
  for (int64_t q = 0; q < queries; ++q) filter.params_of_queries.push_back({(q * 7) % (tenants + 1)});
  return filter;
}

TEST(SearchOfTenants, FindsWhatALoopFinds) {
  for (const IdType ids : {IdType::integer, IdType::text}) {
    for (const char* const index : {"Flat", "IVF4,SQ8"}) {
      SCOPED_TRACE(index);
      const TemporaryDirectory directory;
      const Collection c = case_collection(directory.path("c"), 400, 30, index, ids);
      const std::vector<float> queries = case_rows(50, 9);
      expect_is_a_loop(c.view(), queries, of_tenants(50, 30), 7);
      ItemFilter more = of_tenants(50, 30);
      more.where = "tenant >= ?";  // from no row to all
      expect_is_a_loop(c.view(), queries, more, 7);
      if (ids == IdType::text) continue;
      std::vector<int64_t> some;
      for (int64_t id = 0; id < 1200; id += 3) some.push_back(id);
      more.ids = ItemIds(some);
      expect_is_a_loop(c.view(), queries, more, 3);
    }
  }
}

TEST(SearchOfTenants, ManyKeptRowsGoByTheIndex) {
  // 20,000 kept rows are not few.
  const TemporaryDirectory directory;
  const Collection c = case_collection(directory.path("c"), 40'000, 2, "IVF16,SQ8");
  ASSERT_EQ(c.info().segments[0].index, "IVF16,SQ8");
  expect_is_a_loop(c.view(), case_rows(5, 4), of_tenants(5, 2), 4);
}

TEST(SearchOfTenants, UnderALimitToo) {
  const TemporaryDirectory directory;
  (void)case_collection(directory.path("c"), 400, 30);
  ResourceOptions options;
  options.host_memory_limit = 8 << 20;
  const Resources limited(options);
  const Collection c = Collection::open(directory.path("c"), {.mode = OpenMode::read}, limited);
  expect_is_a_loop(c.view(), case_rows(20, 9), of_tenants(20, 30), 7, limited);
}

// What a version keeps for its tenants is of that version.
TEST(SearchOfTenants, EachVersionFindsItsOwn) {
  const TemporaryDirectory directory;
  Collection c = case_collection(directory.path("c"), 400, 30);
  const std::vector<float> queries = case_rows(62, 9);
  const ItemFilter filter = of_tenants(62, 30);
  const CollectionView before = c.view();
  for (int i = 0; i < 2; ++i) expect_is_a_loop(before, queries, filter, 5);
  CollectionSearchParams params;
  params.search.k = 3;
  params.filter = filter;
  const CollectionNeighbors first = before.search(case_view(queries), params);
  ASSERT_EQ(filter.params_of_queries[8], (std::vector<ColumnValue>{int64_t{25}}));
  const int64_t nearest = first.neighbors.ids(8)[0];
  EXPECT_EQ(c.remove(ItemIds({nearest})), 1);
  c.fold();
  const CollectionNeighbors later = c.search(case_view(queries), params);
  EXPECT_EQ(later.neighbors.ids(8)[0], first.neighbors.ids(8)[1]);
  expect_is_a_loop(c.view(), queries, filter, 5);
  const CollectionNeighbors again = before.search(case_view(queries), params);
  EXPECT_TRUE(std::equal(first.neighbors.ids(), first.neighbors.ids() + 62 * 3, again.neighbors.ids()));
}

// Threads take tenants in turns; the error is that of the first tenant that has one.
TEST(SearchOfTenants, AnErrorOfOneIsThatOfAll) {
  const TemporaryDirectory directory;
  const Collection c = case_collection(directory.path("c"), 50, 10);
  const std::vector<float> queries = case_rows(60, 9);
  CollectionSearchParams params;
  params.filter.where = "tenant = abs(?)";
  for (int64_t q = 0; q < 60; ++q) params.filter.params_of_queries.push_back({q});
  ResourceOptions options;
  options.threads = 4;
  const Resources resources(options);
  EXPECT_EQ(c.search(case_view(queries), params, resources).neighbors.queries(), 60);
  params.filter.params_of_queries[41] = {INT64_MIN};  // of which there is no abs()
  params.filter.params_of_queries[50].push_back(int64_t{1});
  for (int i = 0; i < 5; ++i) {
    const auto error = thrown<InvalidArgument>([&] { (void)c.search(case_view(queries), params, resources); });
    ASSERT_TRUE(error);
    EXPECT_THAT(error->what(), HasSubstr("integer overflow"));
  }
  params.filter.params_of_queries[41] = params.filter.params_of_queries[50] = {int64_t{1}};
  ResourceOptions cancelled = options;
  cancelled.cancel.request();
  EXPECT_THROW((void)c.search(case_view(queries), params, Resources(cancelled)), Cancelled);
}

TEST(SearchOfTenants, RefusesWhatDoesNotGoTogether) {
  const TemporaryDirectory directory;
  const Collection c = case_collection(directory.path("c"), 20, 10);
  const std::vector<float> queries = case_rows(3, 9);
  const auto search = [&](const ItemFilter& filter) {
    CollectionSearchParams params;
    params.filter = filter;
    (void)c.search(case_view(queries), params);
  };
  ItemFilter filter = of_tenants(2, 9);
  EXPECT_THROW(search(filter), InvalidArgument);  // two lists for three queries
  filter = of_tenants(3, 9);
  filter.params = {int64_t{1}};
  EXPECT_THROW(search(filter), InvalidArgument);
  filter = of_tenants(3, 9);
  filter.params_of_queries[1].clear();
  EXPECT_THROW(search(filter), InvalidArgument);
  filter = of_tenants(3, 9);
  filter.where.clear();
  EXPECT_THROW(search(filter), InvalidArgument);
}

}  // namespace
}  // namespace kith
