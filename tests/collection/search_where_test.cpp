// Filters see the version's items and nothing else, however their names are spelt.
#include <kith/collection.hpp>

#include <kith/error.hpp>

#include "collection/search_cases.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kith {
namespace {

using namespace kith::testing;
using ::testing::HasSubstr;

class WhereOf : public ::testing::Test {
 protected:
  int64_t count(const std::string& where) const {
    ItemFilter filter;
    filter.where = where;
    return collection_.count(filter);
  }

  const TemporaryDirectory directory_;
  Collection collection_ = case_collection(directory_.path("c"), 20, 10);
};

TEST_F(WhereOf, NoSpellingReachesTheTable) {
  ASSERT_EQ(collection_.size(), 54);
  for (const char* where : {
           "(select count(*) from items) > 0", "(select count(*) from \"items\") > 0", "(select count(*) from [items]) > 0",
           "(select count(*) from `items`) > 0", "(select count(*) from 'items') > 0", "(select count(*) from main.items) > 0",
           "(select count(*) from \"main\".\"ITEMS\") > 0", "(select count(*) from main.'items') > 0",
           "exists (select 1 from 'items' where tenant = 3)", "(select max(i.'_removed') from 'items' i) > 0",
           "\"rowid\" = 1", "[rowid] = 1", "`oid` = 1", "\"ROWID\" = 1", "\"_rowid_\" = 1", "'items'.'rowid' = 1",
           "'items'.'_removed' = 0", "\"items\".id = 1", "(select count(*) from newest) > 0", "(select version from 'state') > 0",
           "(with x as (select * from 'items') select count(*) from x) > 0",
           "(with \"items\" as (select * from main.'items') select count(*) from \"items\") > 0",
           "(select count(*) from pragma_table_info('items')) > 0",
           // The name by which the statement has the items.
           "'_items'.tenant = 1", "(select count(*) from '_items') > 0", "'_ITEMS_'.'_row' = 1 or '_items'.tenant = 1",
       }) {
    EXPECT_THROW((void)count(where), InvalidArgument) << where;
  }
  EXPECT_EQ(collection_.size(), 54);
}

TEST_F(WhereOf, TextsMaySayAnything) {
  EXPECT_EQ(count("'_items' = '_items' and tenant = 1"), 6);
  EXPECT_EQ(count("'items' <> '\"rowid\"' and [tenant] = 1"), 6);
  EXPECT_EQ(count("tenant in (select value from json_each('[1, 2]'))"), 12);
  EXPECT_EQ(count("exists (select 1 from JSON_EACH('[1]') where value = tenant)"), 6);
  EXPECT_EQ(count("(with w(v) as (values (1), (2)) select max(v) from w) = tenant"), 6);
  EXPECT_EQ(count(""), 54);
}

TEST_F(WhereOf, RemovedItemsStayUnseen) {
  EXPECT_EQ(count("tenant = 3"), 0);
  ItemFilter filter;
  filter.where = "tenant = 4";
  EXPECT_EQ(collection_.remove(filter), 6);
  EXPECT_EQ(collection_.count(filter), 0);
  const auto error = thrown<InvalidArgument>([&] { (void)count("tenant = 1 and absent = 2"); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("character 16: no such column: absent; put text in single quotes"));
}

// A removed item, and one that was added since, are not looked at: what cannot be computed of them is no error.
TEST_F(WhereOf, OtherVersionsAreNoError) {
  CollectionParams params;
  params.dimension = 1;
  params.columns = {{"n", ColumnType::integer}};
  Collection c = Collection::create(directory_.path("d"), params);
  const std::vector<float> vector{1};
  const auto add = [&](int64_t n) {
    Items items;
    items.vectors = MatrixView(vector.data(), 1, 1);
    items.columns = {{"n", {n}}};
    c.add(items);
  };
  ItemFilter filter;
  filter.where = "abs(n) > 3";
  add(5);
  const CollectionView before = c.view();
  add(INT64_MIN);  // of which there is no abs()
  EXPECT_THROW((void)c.count(filter), InvalidArgument);
  EXPECT_EQ(before.count(filter), 1);
  EXPECT_EQ(c.remove(ItemIds({1})), 1);
  EXPECT_EQ(c.count(filter), 1);
  EXPECT_EQ(c.remove(filter), 1);
}

TEST_F(WhereOf, ANullCharacterIsNamed) {
  const auto error = thrown<InvalidArgument>([&] { (void)count(std::string("tenant = 1\0 or 1", 16)); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("character 11: a null character cannot be here"));
}

TEST_F(WhereOf, ALongExpressionIsShownByItsBeginning) {
  const std::string where = "tenant = 1" + std::string(10'000, ' ') + "or absent = 2";
  const auto error = thrown<InvalidArgument>([&] { (void)count(where); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("..."));
  EXPECT_THAT(error->what(), HasSubstr("character 10014: no such column: absent"));
  EXPECT_LT(std::string(error->what()).size(), 300U);
}

TEST_F(WhereOf, IdsEnd) {
  CollectionParams params;
  params.dimension = 1;
  Collection c = Collection::create(directory_.path("e"), params);
  const std::vector<float> vector{1, 2};
  Items items;
  items.vectors = MatrixView(vector.data(), 1, 1);
  items.ids = {INT64_MAX - 2};
  c.add(items);
  items.ids = {};
  items.vectors = MatrixView(vector.data(), 2, 1);
  const auto error = thrown<InvalidArgument>([&] { c.add(items); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("no ids are left behind 9223372036854775805"));
  items.vectors = MatrixView(vector.data(), 1, 1);
  EXPECT_EQ(c.add(items).numbers(), std::vector<int64_t>{INT64_MAX - 1});
  EXPECT_THROW(c.add(items), InvalidArgument);
}

}  // namespace
}  // namespace kith
