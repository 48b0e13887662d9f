// What SQLite takes counts against a memory limit, and stays within what is counted: its own allocations are compared.
#include <kith/collection.hpp>

#include <kith/error.hpp>

#include "collection/sqlite.hpp"
#include "core/memory_budget.hpp"
#include "io/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kith {
namespace {

using namespace kith::testing;

constexpr int64_t kItems = 24'000;
constexpr int64_t kConnections = 2;  // the writer's, and one to read or to copy with

Resources resources_of(int64_t limit) {
  ResourceOptions options;
  options.host_memory_limit = limit;
  options.threads = 1;
  return Resources(options);
}

// Items of 800 bytes: SQLite cannot keep them in few pages.
Items texts(int64_t first, int64_t count, std::vector<float>& vectors) {
  vectors.assign(static_cast<size_t>(2 * count), 1.0f);
  Items items;
  items.vectors = MatrixView(vectors.data(), count, 2);
  items.columns = {{"text", {}}, {"number", {}}};
  for (int64_t i = first; i < first + count; ++i) {
    items.columns[0].values.emplace_back(std::to_string(i * 7919 % 1'000'003) + std::string(800, 'x'));
    items.columns[1].values.emplace_back(i);
  }
  return items;
}

void fill(const std::string& path) {
  CollectionParams params;
  params.dimension = 2;
  params.columns = {{"text", ColumnType::text, false}, {"number", ColumnType::integer, true}};
  Collection c = Collection::create(path, params);
  std::vector<float> vectors;
  c.add(texts(0, kItems, vectors));
  c.close();
}

// The most that SQLite has taken at a time, beyond what it had before.
int64_t taken_by(const std::function<void()>& work) {
  const int64_t before = sqlite3_memory_used();
  (void)sqlite3_memory_highwater(1);
  work();
  return sqlite3_memory_highwater(0) - before;
}

// What takes most: large transactions, sorts, lists of values, packing.
struct Step {
  const char* name;
  std::function<void(Collection&, const Resources&)> work;
};

std::vector<Step> steps(const std::string& copy) {
  std::string list = "[0";
  for (int64_t i = 1; i < kItems; ++i) list += "," + std::to_string(i);
  list += "]";
  const auto where = [](std::string expression, std::vector<ColumnValue> params = {}) {
    ItemFilter filter;
    filter.where = std::move(expression);
    filter.params = std::move(params);
    return filter;
  };
  return {
      {"all items are looked at", [=](Collection& c, const Resources& used) {
        EXPECT_EQ(c.count(where("text like '%y'"), used), 0);
      }},
      {"items by an index, in no order", [=](Collection& c, const Resources& used) {
        EXPECT_EQ(c.count(where("number % 3 = 1 and number > 5"), used), kItems / 3 - 2);
      }},
      {"many are added", [](Collection& c, const Resources& used) {
        std::vector<float> vectors;
        c.add(texts(kItems, kItems / 2, vectors), used);
      }},
      {"a column gets an index", [](Collection& c, const Resources& used) { c.create_index("text", used); }},
      {"many are removed", [=](Collection& c, const Resources& used) {
        EXPECT_EQ(c.remove(where("number % 2 = 0"), used), kItems * 3 / 4);
      }},
      {"all is packed", [](Collection& c, const Resources& used) { c.compact(used); }},
      {"all is copied", [copy](Collection& c, const Resources& used) { c.snapshot(copy, used); }},
      {"all is verified", [](Collection& c, const Resources& used) { EXPECT_TRUE(c.verify(used).sound()); }},
      {"a list of values", [=](Collection& c, const Resources& used) {
        const auto listed = where("number in (select value from json_each(?))", {list});
        EXPECT_EQ(c.count(listed, used), kItems / 2);
      }},
  };
}

TEST(DatabaseMemory, StaysWithinWhatIsCounted) {
  const TemporaryDirectory directory;
  fill(directory.path("c"));
  if (sqlite3_memory_used() == 0 && taken_by([&] { (void)Collection::open(directory.path("c")); }) == 0) {
    GTEST_SKIP() << "this SQLite does not say what it takes";
  }
  for (const bool at_open : {true, false}) {
    SCOPED_TRACE(at_open ? "the collection's limit" : "a limit of each call");
    const Resources opened = at_open ? resources_of(256 << 20) : Resources();
    if (!at_open) fill(directory.path("d"));
    const std::string path = directory.path(at_open ? "c" : "d");
    Collection c = Collection::open(path, {}, opened);
    for (const Step& step : steps(path + "-copy")) {
      const Resources used = at_open ? opened : resources_of(256 << 20);
      const int64_t taken = taken_by([&] { step.work(c, used); });
      // The list itself is SQLite's too: its text, and the tree that its json functions make of it.
      const int64_t values = std::string(step.name) == "a list of values" ? int64_t{8} << 20 : 0;
      EXPECT_LE(taken, kConnections * kDatabaseMemory + values) << step.name;
      EXPECT_GE(used.host_memory()->peak(), kDatabaseMemory) << step.name;
    }
  }
}

TEST(DatabaseMemory, CountsForEachLimit) {
  const TemporaryDirectory directory;
  fill(directory.path("c"));
  Collection c = Collection::open(directory.path("c"));
  ItemFilter filter;
  filter.where = "number < 10";
  EXPECT_THROW((void)c.count(filter, resources_of(kDatabaseMemory)), OutOfMemory);
  const Resources enough = resources_of(2 * kDatabaseMemory);
  EXPECT_EQ(c.count(filter, enough), 10);
  EXPECT_EQ(enough.host_memory()->used(), 0);
  EXPECT_GT(enough.host_memory()->peak(), kDatabaseMemory);
  EXPECT_THROW((void)c.remove(filter, resources_of(kDatabaseMemory / 2)), OutOfMemory);
  EXPECT_EQ(c.remove(filter, enough), 10);
  EXPECT_EQ(c.count(filter), 0);
  c.close();
  EXPECT_THROW((void)Collection::open(directory.path("c"), {}, resources_of(kDatabaseMemory / 2)), OutOfMemory);
  const Resources opened = resources_of(4 * kDatabaseMemory);
  const Collection again = Collection::open(directory.path("c"), {}, opened);
  EXPECT_GE(opened.host_memory()->used(), kDatabaseMemory);
}

}  // namespace
}  // namespace kith
