// Collections on the real disk: calls, reopening, filters, readers, errors.
#include <kith/collection.hpp>

#include <kith/error.hpp>

#include "collection/collection_access.hpp"
#include "collection/collection_model.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace kith {
namespace {

using namespace kith::testing;
using ::testing::HasSubstr;

CollectionEnvironment small_environment() {
  CollectionEnvironment environment;
  environment.fold_bytes = 64 * kModelDimension * 4;
  environment.close_fold_bytes = 8 * kModelDimension * 4;
  environment.segment_bytes = 32 * kModelDimension * 4;
  environment.least_dropped = 8;
  environment.index_rows = 64;
  return environment;
}

struct Some {
  std::vector<float> vectors;
  Items items;
};

Some some_items(int64_t count, int64_t first_value = 0) {
  Some some;
  for (int64_t i = 0; i < count * kModelDimension; ++i) some.vectors.push_back(static_cast<float>(first_value + i));
  return some;
}
const Items& placed(Some& some) {
  some.items.vectors = MatrixView(some.vectors.data(), static_cast<int64_t>(some.vectors.size()) / kModelDimension,
                                  kModelDimension);
  return some.items;
}

TEST(Collection, HoldsWhatWasAddedAfterReopening) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("c");
  Some some = some_items(3);
  some.items.columns = {{"year", {int64_t{1990}, ColumnValue(), int64_t{2010}}},
                        {"genre", {std::string("jazz"), std::string(""), std::string("a\0b", 3)}}};
  some.items.payloads = {"first", "", std::string("\0\1", 2)};
  {
    Collection c = Collection::create(path, model_params());
    EXPECT_EQ(c.add(placed(some)).numbers(), (std::vector<int64_t>{0, 1, 2}));
    EXPECT_EQ(c.size(), 3);
    c.close();
    EXPECT_THROW(c.add(placed(some)), InvalidState);
  }
  for (const OpenMode mode : {OpenMode::write, OpenMode::read}) {
    OpenParams params;
    params.mode = mode;
    const Collection c = Collection::open(path, params);
    EXPECT_EQ(c.size(), 3);
    const ItemTable table = c.get(ItemIds({2, 0}));
    EXPECT_EQ(table.payloads, (std::vector<std::string>{std::string("\0\1", 2), "first"}));
    EXPECT_EQ(table.columns[0].values, (std::vector<ColumnValue>{int64_t{2010}, int64_t{1990}}));
    EXPECT_EQ(table.columns[1].values[0], ColumnValue(std::string("a\0b", 3)));
    EXPECT_EQ(*reinterpret_cast<const float*>(table.vectors.view().row(0)), 8.0f);
    EXPECT_TRUE(c.verify().sound());
  }
}

TEST(Collection, RandomCallsDoWhatTheModelDoes) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const TemporaryDirectory directory;
    const std::string path = directory.path("c");
    Draw draw(seed);
    CollectionModel model;
    auto c = CollectionAccess::create(path, model_params(), {}, small_environment());
    OpenParams reading;
    reading.mode = OpenMode::read;
    Collection reader = CollectionAccess::open(path, reading, small_environment());
    std::vector<std::pair<CollectionView, CollectionModel>> views;
    for (int call = 0; call < 60; ++call) {
      SCOPED_TRACE(call);
      random_call(c, model, draw);
      expect_is(c.view(), model, draw);
      if (::testing::Test::HasFatalFailure()) return;
      if (draw.one_in(4)) {
        reader.refresh();
        expect_is(reader.view(), model, draw);
        views.emplace_back(draw.one_in(2) ? reader.view() : c.view(), model);
      }
      if (draw.one_in(12)) {
        c.close();
        c = CollectionAccess::open(path, {}, small_environment());
      }
      if (!views.empty() && draw.one_in(5)) {
        const auto& [view, then] = views[static_cast<size_t>(draw.below(static_cast<int64_t>(views.size())))];
        expect_is(view, then, draw);
      }
      if (views.size() > 4) views.erase(views.begin());
      if (::testing::Test::HasFatalFailure()) return;
    }
    const VerifyReport report = c.verify();
    for (const VerifyProblem& problem : report.problems) ADD_FAILURE() << problem.file << ": " << problem.reason;
  }
}

TEST(Collection, RefusesAnIdThatIsThereAndChangesNothing) {
  const TemporaryDirectory directory;
  Collection c = Collection::create(directory.path("c"), model_params());
  Some some = some_items(2);
  some.items.ids = ItemIds({7, 9});
  c.add(placed(some));
  some.items.ids = ItemIds({8, 9});
  const auto error = thrown<InvalidArgument>([&] { c.add(placed(some)); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("the id 9 is there already"));
  some.items.ids = ItemIds({5, 5});
  EXPECT_THROW(c.add(placed(some)), InvalidArgument);
  EXPECT_EQ(c.ids().numbers(), (std::vector<int64_t>{7, 9}));
  some.items.ids = ItemIds({-1, 3});
  EXPECT_THROW(c.add(placed(some)), InvalidArgument);
  some.items.ids = {};
  EXPECT_EQ(c.add(placed(some)).numbers(), (std::vector<int64_t>{10, 11}));
  c.remove(ItemIds({11}));
  EXPECT_EQ(c.add(placed(some)).numbers(), (std::vector<int64_t>{12, 13}));  // given ids never come back
}

TEST(Collection, TextIdsFromMemoryAndFromSegments) {
  const TemporaryDirectory directory;
  CollectionParams params = model_params();
  params.ids = IdType::text;
  Collection c = Collection::create(directory.path("c"), params);
  Some some = some_items(3);
  EXPECT_THROW(c.add(placed(some)), InvalidArgument);
  some.items.ids = ItemIds(std::vector<std::string>{"a", "", "longer text"});
  c.add(placed(some));
  const auto look = [&] {
    CollectionSearchParams search;
    search.search.k = 4;
    const CollectionNeighbors found = c.search(MatrixView(some.vectors.data(), 1, kModelDimension), search);
    EXPECT_EQ(found.texts, (std::vector<std::string>{"a", "", "longer text", ""}));
    EXPECT_EQ(found.neighbors.ids()[3], -1);
    EXPECT_EQ(c.ids().texts(), (std::vector<std::string>{"a", "", "longer text"}));
    EXPECT_TRUE(c.verify().sound());
  };
  look();
  c.fold();
  EXPECT_EQ(c.info().segments.size(), 1U);
  look();
  c.compact();
  look();
  EXPECT_THROW((void)c.get(ItemIds({1})), InvalidArgument);
  EXPECT_EQ(c.get(ItemIds(std::vector<std::string>{"longer text"})).ids.texts()[0], "longer text");
}

TEST(Collection, ABatchIsOneTransaction) {
  const TemporaryDirectory directory;
  Collection c = CollectionAccess::create(directory.path("c"), model_params(), {}, small_environment());
  Some some = some_items(2);
  Some large = some_items(50, 100);  // a segment at once
  {
    CollectionBatch batch = c.batch();
    c.add(placed(some));
    c.add(placed(large));
    EXPECT_EQ(c.size(), 0);
    EXPECT_THROW((void)c.batch(), InvalidState);
    EXPECT_THROW(c.fold(), InvalidState);
  }
  EXPECT_EQ(c.size(), 0);
  {
    CollectionBatch batch = c.batch();
    const ItemIds ids = c.add(placed(large));
    some.items.ids = ItemIds({ids.numbers()[0], 1000});
    c.upsert(placed(some));
    c.remove(ItemIds({ids.numbers()[1], 1000}));
    EXPECT_THROW(c.add(placed(some)), InvalidArgument);  // which ends this call alone
    batch.commit();
  }
  EXPECT_EQ(c.size(), 49);
  EXPECT_EQ(c.version(), 1);
  c.close();
  c = Collection::open(directory.path("c"));
  EXPECT_EQ(c.size(), 49);
  EXPECT_TRUE(c.verify().sound());
}

TEST(Collection, AFilterReadsAndNothingElse) {
  const TemporaryDirectory directory;
  Collection c = Collection::create(directory.path("c"), model_params());
  Some some = some_items(4);
  some.items.columns = {{"year", {int64_t{1}, int64_t{2}, int64_t{3}, ColumnValue()}},
                        {"genre", {std::string("it's"), std::string("b"), std::string("c"), std::string("d")}}};
  c.add(placed(some));
  const auto count = [&](const std::string& where, std::vector<ColumnValue> params = {}) {
    ItemFilter filter;
    filter.where = where;
    filter.params = std::move(params);
    return c.count(filter);
  };
  EXPECT_EQ(count("year >= 2"), 2);
  EXPECT_EQ(count("year is null or genre = 'it''s'"), 2);
  EXPECT_EQ(count("id in (0, 3) and length(genre) > ?", {int64_t{0}}), 2);
  EXPECT_EQ(count("exists (select 1 from json_each('[1,3]') where value = year)"), 2);
  for (const char* where :
       {"year = ", "1) or (1", "1; delete from items", "_removed = 0", "\"_row\" = 1", "year = 1 -- comment", "(year",
        "'open", "load_extension('x')", "(select count(*) from sqlite_master) > 0", "(select max(_row) from items) > 0",
        "rowid = 1", "absent = 1", "\"absent\" = 1", "random() > 0", "year = ?", "1 group by year"}) {
    EXPECT_THROW((void)count(where), InvalidArgument) << where;
  }
  EXPECT_THROW((void)count("year = 1", {int64_t{1}}), InvalidArgument);
  const auto error = thrown<InvalidArgument>([&] { (void)count("year > 1 and absent = 2"); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("character 14: no such column: absent"));
  ItemFilter slow;
  slow.where = "(with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n) > 0";
  slow.time_limit = std::chrono::milliseconds(20);
  EXPECT_THROW((void)c.count(slow), InvalidState);
  EXPECT_EQ(c.size(), 4);
  c.create_index("year");
  EXPECT_EQ(count("year >= 2"), 2);
  EXPECT_EQ(c.remove(ItemFilter{}), 0);
}

TEST(Collection, MasksIdsAndParametersOfQueries) {
  const TemporaryDirectory directory;
  Collection c = CollectionAccess::create(directory.path("c"), model_params(), {}, small_environment());
  Draw draw(3);
  CollectionModel model;
  for (int i = 0; i < 30; ++i) random_call(c, model, draw);
  const std::vector<int64_t> ids = model.ids_in_order();
  std::vector<uint8_t> mask;
  std::vector<int64_t> kept;
  for (size_t i = 0; i < ids.size(); ++i) {
    mask.push_back(static_cast<uint8_t>(i % 3 == 0 ? 1 : 0));
    if (i % 3 == 0) kept.push_back(ids[i]);
  }
  ItemFilter filter;
  filter.mask = mask;
  EXPECT_EQ(c.ids(filter).numbers(), kept);
  ItemFilter by_ids;
  by_ids.ids = ItemIds(kept);
  EXPECT_EQ(c.ids(by_ids).numbers(), kept);
  filter.ids = ItemIds({kept[0], ids[1], 1 << 20});
  EXPECT_EQ(c.ids(filter).numbers(), std::vector<int64_t>{kept[0]});
  mask.pop_back();
  filter.mask = mask;
  EXPECT_THROW((void)c.ids(filter), InvalidArgument);

  std::vector<float> queries;
  CollectionSearchParams params;
  params.search.k = 3;
  params.filter.where = "genre = ?";
  for (int q = 0; q < 6; ++q) {
    for (int64_t i = 0; i < kModelDimension; ++i) queries.push_back(static_cast<float>(draw.below(8)));
    params.filter.params_of_queries.push_back({std::string(q % 2 == 0 ? "jazz" : "folk")});
  }
  const CollectionNeighbors together = c.search(MatrixView(queries.data(), 6, kModelDimension), params);
  for (int q = 0; q < 6; ++q) {
    CollectionSearchParams alone = params;
    alone.filter.params = alone.filter.params_of_queries[static_cast<size_t>(q)];
    alone.filter.params_of_queries.clear();
    const CollectionNeighbors one = c.search(MatrixView(&queries[static_cast<size_t>(q) * kModelDimension], 1, kModelDimension), alone);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(one.neighbors.ids()[i], together.neighbors.ids(q)[i]);
      EXPECT_EQ(one.neighbors.distances()[i], together.neighbors.distances(q)[i]);
    }
  }
}

TEST(Collection, ASecondWriterIsToldWhoWrites) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("c");
  Collection c = Collection::create(path, model_params());
  const auto error = thrown<InvalidState>([&] { (void)Collection::open(path); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("is open for writing by process " + std::to_string(::getpid())));
  OpenParams waits;
  waits.timeout = std::chrono::seconds(20);
  std::thread closer([&] { c.close(); });
  const Collection second = Collection::open(path, waits);
  closer.join();
  EXPECT_EQ(second.mode(), OpenMode::write);
}

TEST(Collection, IndexesAreDerivedAndMayBeLost) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("c");
  CollectionParams params = model_params();
  params.index = "IVF4,SQ8";
  Draw draw(9);
  CollectionModel model;
  std::vector<std::pair<int64_t, ModelItem>> items;
  for (int64_t i = 0; i < 500; ++i) items.emplace_back(i, random_item(draw));
  ModelBatch batch = model_batch(items);
  std::string index_file;
  std::vector<int64_t> with_index;
  const std::vector<float> query{1, 2, 3, 4};
  CollectionSearchParams search;
  search.search.k = 5;
  search.search.probes = 4;
  const auto ids_of = [&](const Collection& c) {
    const CollectionNeighbors found = c.search(MatrixView(query.data(), 1, kModelDimension), search);
    return std::vector<int64_t>(found.neighbors.ids(), found.neighbors.ids() + 5);
  };
  {
    Collection c = CollectionAccess::create(path, params, {}, small_environment());
    c.add(with_vectors(batch));
    c.compact();
    const CollectionInfo info = c.info();
    ASSERT_EQ(info.segments.size(), 1U);
    EXPECT_EQ(info.segments[0].index, "IVF4,SQ8");
    EXPECT_EQ(info.not_indexed, 0);
    index_file = path + "/" + info.segments[0].index_file;
    with_index = ids_of(c);
    EXPECT_TRUE(c.verify().sound());
  }
  EXPECT_EQ(ids_of(Collection::open(path)), with_index);
  std::filesystem::resize_file(index_file, 100);
  std::vector<std::string> logged;
  ResourceOptions options;
  options.log = [&](LogLevel, std::string_view text) { logged.emplace_back(text); };
  {
    const Collection c = Collection::open(path);
    const VerifyReport report = c.verify();
    ASSERT_EQ(report.problems.size(), 1U);
    EXPECT_EQ(report.problems[0].file, index_file);
    (void)c.search(MatrixView(query.data(), 1, kModelDimension), search, Resources(options));
  }
  std::filesystem::remove(index_file);
  {
    Collection c = CollectionAccess::open(path, {}, small_environment());
    (void)c.search(MatrixView(query.data(), 1, kModelDimension), search);
    EXPECT_EQ(c.size(), 500);
    c.reindex("Flat");
    EXPECT_EQ(c.info().not_indexed, 500);
    EXPECT_THROW((void)ids_of(c), InvalidArgument);  // Flat knows no probes
    c.reindex("IVF4,SQ8");
    EXPECT_EQ(ids_of(c), with_index);
    EXPECT_TRUE(c.verify().sound());
    EXPECT_THROW(c.reindex("Nonsense"), InvalidArgument);
  }
}

TEST(Collection, ASnapshotIsACollection) {
  const TemporaryDirectory directory;
  Collection c = CollectionAccess::create(directory.path("c"), model_params(), {}, small_environment());
  Draw draw(5);
  CollectionModel model;
  for (int i = 0; i < 25; ++i) random_call(c, model, draw);
  c.snapshot(directory.path("copy"));
  EXPECT_THROW(c.snapshot(directory.path("copy")), InvalidArgument);
  const CollectionModel then = model;
  for (int i = 0; i < 25; ++i) random_call(c, model, draw);
  const Collection copy = Collection::open(directory.path("copy"));
  expect_is(copy.view(), then, draw);
  EXPECT_TRUE(copy.verify().sound());
}

TEST(Collection, ColumnsMayBeAddedLater) {
  const TemporaryDirectory directory;
  Collection c = Collection::create(directory.path("c"), model_params());
  Some some = some_items(1);
  c.add(placed(some));
  c.add_column({"stars", ColumnType::real, true});
  c.add_column({"tags", ColumnType::json, false});
  c.add_column({"kept", ColumnType::boolean, false});
  some.items.columns = {{"stars", {4.5}}, {"tags", {std::string("[1, 2]")}}, {"kept", {true}}};
  c.add(placed(some));
  some.items.columns = {{"tags", {std::string("[1, 2")}}};
  EXPECT_THROW(c.add(placed(some)), InvalidArgument);
  some.items.columns = {{"kept", {int64_t{1}}}};
  EXPECT_THROW(c.add(placed(some)), InvalidArgument);
  EXPECT_THROW(c.add_column({"STARS", ColumnType::text, false}), InvalidArgument);
  EXPECT_THROW(c.add_column({"id", ColumnType::text, false}), InvalidArgument);
  EXPECT_THROW(c.add_column({"a\"b", ColumnType::text, false}), InvalidArgument);
  c.close();
  const Collection again = Collection::open(directory.path("c"));
  const ItemTable table = again.get(ItemIds({0, 1}));
  ASSERT_EQ(table.columns.size(), 5U);
  EXPECT_EQ(table.columns[2].values, (std::vector<ColumnValue>{ColumnValue(), 4.5}));
  EXPECT_EQ(table.columns[3].values[1], ColumnValue(std::string("[1, 2]")));
  EXPECT_EQ(table.columns[4].values[1], ColumnValue(true));
  EXPECT_TRUE(again.verify().sound());
}

TEST(Collection, ALimitChangesNoResult) {
  const TemporaryDirectory directory;
  Collection c = CollectionAccess::create(directory.path("c"), model_params(), {}, small_environment());
  Draw draw(11);
  CollectionModel model;
  for (int i = 0; i < 40; ++i) random_call(c, model, draw);
  c.close();
  ResourceOptions options;
  options.host_memory_limit = 32 << 20;
  OpenParams reading;
  reading.mode = OpenMode::read;
  const Resources limited(options);
  const Collection read = CollectionAccess::open(directory.path("c"), reading, small_environment(), limited);
  const Collection mapped = CollectionAccess::open(directory.path("c"), reading, small_environment());
  for (int i = 0; i < 10; ++i) {
    std::vector<float> query;
    for (int64_t k = 0; k < kModelDimension; ++k) query.push_back(static_cast<float>(draw.below(8)));
    const MatrixView queries(query.data(), 1, kModelDimension);
    const CollectionNeighbors a = read.search(queries, {}, limited);
    const CollectionNeighbors b = mapped.search(queries);
    EXPECT_TRUE(std::equal(a.neighbors.ids(), a.neighbors.ids() + 10, b.neighbors.ids()));
    CollectionRangeParams range;
    range.radius = 9;
    const CollectionRange near = read.range_search(queries, range, limited);
    const CollectionRange same = mapped.range_search(queries, range);
    ASSERT_EQ(near.neighbors.size(), same.neighbors.size());
    EXPECT_TRUE(std::equal(near.neighbors.ids(), near.neighbors.ids() + near.neighbors.size(), same.neighbors.ids()));
  }
  ResourceOptions tiny;
  tiny.host_memory_limit = 1 << 10;
  EXPECT_THROW((void)CollectionAccess::open(directory.path("c"), reading, small_environment(), Resources(tiny)), OutOfMemory);
}

// Items that were replaced many times leave no gaps in the database, and a view from before sees its own.
TEST(Collection, CompactionPacksTheDatabase) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("c");
  Collection c = CollectionAccess::create(path, model_params(), {.sync = SyncMode::later}, small_environment());
  Draw draw(3);
  CollectionModel model;
  constexpr int64_t kIds = 500;
  for (int64_t i = 0; i < 6 * kIds; ++i) {
    ModelItem item = random_item(draw);
    const int64_t id = i < kIds ? i : draw.below(kIds);
    ModelBatch batch = model_batch({{id, item}});
    c.upsert(with_vectors(batch));
    model.put(id, std::move(item));
  }
  const auto compacted_bytes = [&] {
    c.compact();
    return static_cast<int64_t>(std::filesystem::file_size(path + "/collection.sqlite"));
  };
  const CollectionView before = c.view();
  c.remove(ItemIds({0, 1, 2}));
  for (const int64_t id : {0, 1, 2}) model.items.erase(id);
  const int64_t bytes = compacted_bytes();
  EXPECT_EQ(before.size(), kIds);
  EXPECT_EQ(before.get(ItemIds({0})).payloads.size(), 1U);
  EXPECT_TRUE(model_of(c.view()).same_items(model));
  EXPECT_TRUE(c.verify().sound());
  // As a collection that only ever held these items, but for a page or two of each of ten tables and indexes.
  const std::string other = directory.path("other");
  Collection fresh = CollectionAccess::create(other, model_params(), {}, small_environment());
  std::vector<std::pair<int64_t, ModelItem>> items(model.items.begin(), model.items.end());
  ModelBatch batch = model_batch(items);
  fresh.add(with_vectors(batch));
  fresh.compact();
  EXPECT_LE(bytes, static_cast<int64_t>(std::filesystem::file_size(other + "/collection.sqlite")) + 20 * 4096);
}

// What is written to a file without a name would be lost with the process.
TEST(Collection, IsNotWrittenOnceItWasMovedOrDeleted) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("c");
  Collection c = Collection::create(path, model_params());
  Some some = some_items(3);
  c.add(placed(some));
  std::filesystem::rename(path, directory.path("d"));
  const auto error = thrown<IoError>([&] { c.add(placed(some)); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("was moved or deleted while it was open"));
  EXPECT_THROW((void)c.batch(), IoError);
  EXPECT_EQ(c.search(some.items.vectors).neighbors.ids()[0], 0);
  std::filesystem::rename(directory.path("d"), path);
  c.add(placed(some));
  c.close();
  EXPECT_EQ(Collection::open(path).size(), 6);
}

TEST(Collection, RefusesSnapshotsInsideOfItself) {
  const TemporaryDirectory directory;
  const Collection c = Collection::create(directory.path("c"), model_params());
  EXPECT_THROW(c.snapshot(directory.path("c/segments/s")), InvalidArgument);
  EXPECT_THROW(c.snapshot(directory.path("other/../c/s")), InvalidArgument);
  c.snapshot(directory.path("c2"));
  EXPECT_EQ(Collection::open(directory.path("c2")).size(), 0);
}

TEST(Collection, RefusesWhatIsNoCollection) {
  const TemporaryDirectory directory;
  EXPECT_THROW((void)Collection::open(directory.path("none")), IoError);
  std::filesystem::create_directory(directory.path("full"));
  directory.write("full/other", "x");
  EXPECT_THROW((void)Collection::create(directory.path("full"), model_params()), InvalidArgument);
  std::filesystem::create_directory(directory.path("text"));
  directory.write("text/collection.sqlite", std::string(5000, 'x'));
  EXPECT_THROW((void)Collection::open(directory.path("text")), CorruptFile);
  CollectionParams bad = model_params();
  bad.dimension = 0;
  EXPECT_THROW((void)Collection::create(directory.path("bad"), bad), InvalidArgument);
  bad = model_params();
  bad.columns.push_back({"Year", ColumnType::text, false});
  EXPECT_THROW((void)Collection::create(directory.path("bad"), bad), InvalidArgument);
  EXPECT_FALSE(Collection::exists(directory.path("bad")));
  Collection c = Collection::create(directory.path("good"), model_params());
  EXPECT_THROW((void)Collection::create(directory.path("good"), model_params()), InvalidArgument);
  Some some = some_items(1);
  some.vectors[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(c.add(placed(some)), InvalidArgument);
  CollectionSearchParams probes;
  probes.search.probes = 3;
  some = some_items(1);
  placed(some);
  EXPECT_THROW((void)c.search(some.items.vectors, probes), InvalidArgument);
}

}  // namespace
}  // namespace kith
