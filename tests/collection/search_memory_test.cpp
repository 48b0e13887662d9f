// Searches and get() keep a memory limit, and name one that works.
#include <kith/collection.hpp>

#include <kith/error.hpp>

#include "collection/search_cases.hpp"
#include "collection/sqlite.hpp"
#include "core/memory_budget.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kith {
namespace {

using namespace kith::testing;
using ::testing::HasSubstr;

Resources limited_to(int64_t bytes) {
  ResourceOptions options;
  options.host_memory_limit = bytes;
  options.threads = 2;
  return Resources(options);
}

// The limit that a refused call names; 0 where it works.
int64_t named_limit(const std::function<void(const Resources&)>& call, int64_t limit) {
  try {
    call(limited_to(limit));
    return 0;
  } catch (const OutOfMemory& refused) {
    return refused.bytes_needed();
  }
}

// With the limit that a refused call names it works; with half of it about the same is named again.
void expect_names_a_limit(const std::function<void(const Resources&)>& call) {
  const int64_t limit = named_limit(call, 1);
  EXPECT_GT(limit, 1);
  EXPECT_EQ(named_limit(call, limit), 0);
  const int64_t again = named_limit(call, limit / 2);
  EXPECT_GT(again, limit / 2);
  EXPECT_LT(again, limit + limit / 8);
}

TEST(SearchMemory, NamesALimitThatWorks) {
  for (const char* const index : {"Flat", "IVF4,SQ8"}) {
    SCOPED_TRACE(index);
    const TemporaryDirectory directory;
    (void)case_collection(directory.path("c"), 5000, 30, index);
    const Collection c = Collection::open(directory.path("c"), {.mode = OpenMode::read}, limited_to(64 << 20));
    const std::vector<float> queries = case_rows(30, 5);
    CollectionSearchParams params;
    expect_names_a_limit([&](const Resources& used) { (void)c.search(case_view(queries), params, used); });
    params.filter.where = "tenant > 4";
    expect_names_a_limit([&](const Resources& used) { (void)c.search(case_view(queries), params, used); });
    params.filter.where = "tenant = ?";
    for (int64_t q = 0; q < 30; ++q) params.filter.params_of_queries.push_back({q});
    expect_names_a_limit([&](const Resources& used) { (void)c.search(case_view(queries), params, used); });
  }
}

TEST(SearchMemory, GetCountsValuesAndPayloads) {
  const TemporaryDirectory directory;
  CollectionParams made;
  made.dimension = 2;
  made.columns = {{"text", ColumnType::text, false}};
  Collection c = Collection::create(directory.path("c"), made);
  const std::vector<float> vectors(20, 1.0f);
  Items items;
  items.vectors = MatrixView(vectors.data(), 10, 2);
  items.columns = {{"text", std::vector<ColumnValue>(10, std::string(50'000, 't'))}};
  items.payloads.assign(10, std::string(100'000, 'p'));
  c.add(items);
  const auto get = [&](const Resources& used) { (void)c.get(ItemIds({0, 1, 2, 3, 4}), used); };
  expect_names_a_limit(get);
  const auto refused = thrown<OutOfMemory>([&] { get(limited_to(kDatabaseMemory + 700'000)); });
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->what(), HasSubstr("host memory limit"));
  EXPECT_GT(refused->bytes_needed(), kDatabaseMemory + 750'000);
  EXPECT_LT(refused->bytes_needed(), kDatabaseMemory + 760'000);
  EXPECT_EQ(c.get(ItemIds({7}), limited_to(kDatabaseMemory + 200'000)).payloads[0].size(), 100'000U);
}

TEST(SearchMemory, AnIndexIsLoadedOnceForAllLimits) {
  const TemporaryDirectory directory;
  (void)case_collection(directory.path("c"), 40'000, 30, "IVF16,SQ8");
  const Resources opened = limited_to(64 << 20);
  const Collection c = Collection::open(directory.path("c"), {.mode = OpenMode::read}, opened);
  const std::vector<float> queries = case_rows(3, 5);
  const Resources first = limited_to(64 << 20);
  const CollectionNeighbors found = c.search(case_view(queries), {}, first);
  const int64_t held = first.host_memory()->used();
  EXPECT_GT(held, 40'000 * kCaseDimension);
  // Another call, with a limit of its own, reads nothing again, but counts what it uses.
  std::filesystem::remove(directory.path("c") + "/" + c.info().segments[0].index_file);
  std::vector<std::string> logged;
  ResourceOptions options;
  options.host_memory_limit = 64 << 20;
  options.log = [&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) logged.emplace_back(text);
  };
  const Resources second(options);
  const CollectionNeighbors again = c.search(case_view(queries), {}, second);
  EXPECT_TRUE(std::equal(found.neighbors.ids(), found.neighbors.ids() + 30, again.neighbors.ids()));
  EXPECT_TRUE(logged.empty());
  EXPECT_LT(second.host_memory()->used(), held / 2);  // what it counted is given back
  EXPECT_THROW((void)c.search(case_view(queries), {}, limited_to(held / 2)), OutOfMemory);
}

}  // namespace
}  // namespace kith
