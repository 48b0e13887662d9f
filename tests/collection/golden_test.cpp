// Collections that were written once and always open. A new version of the schema gets a folder beside these, which stay:
// DISABLED_GoldenCollection.IsWritten makes it.
#include <kith/collection.hpp>

#include "collection/collection_access.hpp"
#include "collection/collection_model.hpp"
#include "io/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace kith {
namespace {

using namespace kith::testing;

const std::string kGolden = std::string(KITH_GOLDEN) + "/collection/v1";

// Removed items in a segment with an index, a second segment, newest rows; columns, payloads.
CollectionModel golden_calls(const std::string& path) {
  CollectionEnvironment environment;
  environment.index_rows = 64;
  CollectionParams params = model_params();
  params.index = "IVF2,SQ8";
  params.columns[0].indexed = true;
  CollectionModel model;
  Draw draw(2026);
  Collection c = CollectionAccess::create(path, params, {}, environment);
  const auto add = [&](int64_t count) {
    std::vector<std::pair<int64_t, ModelItem>> items;
    for (int64_t i = 0; i < count; ++i) items.emplace_back(model.next_id + i, random_item(draw));
    for (const auto& [id, item] : items) model.put(id, item);
    ModelBatch batch = model_batch(items);
    c.add(with_vectors(batch));
  };
  const auto remove = [&](const std::vector<int64_t>& ids) {
    for (const int64_t id : ids) model.items.erase(id);
    c.remove(ItemIds(ids));
  };
  add(100);
  c.compact();
  remove({3, 50});
  add(20);
  c.fold();
  add(5);
  remove({101, 121});
  c.close();
  return model;
}

TEST(GoldenCollection, OpensAsItWasWritten) {
  const TemporaryDirectory directory;
  const CollectionModel model = golden_calls(directory.path("fresh"));
  std::filesystem::copy(kGolden, directory.path("golden"), std::filesystem::copy_options::recursive);
  Draw draw(1);
  for (const OpenMode mode : {OpenMode::read, OpenMode::write}) {
    OpenParams params;
    params.mode = mode;
    const Collection c = Collection::open(directory.path("golden"), params);
    EXPECT_TRUE(model_of(c.view()).same_items(model));
    EXPECT_EQ(c.ids().numbers(), model.ids_in_order());
    EXPECT_EQ(c.params().index, "IVF2,SQ8");
    EXPECT_TRUE(c.params().columns[0].indexed);
    EXPECT_EQ(c.info().segments.size(), 2U);
    EXPECT_EQ(c.info().newest, 4);
    EXPECT_TRUE(c.verify().sound());
  }
  Collection c = Collection::open(directory.path("golden"));
  c.reindex("Flat");
  expect_is(c.view(), model, draw);
}

TEST(DISABLED_GoldenCollection, IsWritten) {
  std::filesystem::create_directories(std::filesystem::path(kGolden).parent_path());
  (void)golden_calls(kGolden);
  std::filesystem::remove(kGolden + "/lock");
}

}  // namespace
}  // namespace kith
