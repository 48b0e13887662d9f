// A small closed collection whose files are damaged: each byte flipped in turn, each file cut, removed, doubled and
// exchanged with that of another collection. Opening or reading throws one of Kith's errors, or verify() names the file,
// or nothing that was added has changed (bytes that SQLite does not use).
#include <kith/collection.hpp>

#include <kith/error.hpp>

#include "collection/simulated_collection.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace kith {
namespace {

using namespace kith::testing;

const std::string kDamagedPath = "disk/c";

struct Sound {
  SimulatedDisk::Content content;
  CollectionModel model;
};

Sound sound_collection(uint64_t seed) {
  SimulatedDisk disk;
  const SimulatedVfs vfs(disk);
  Sound sound;
  CollectionParams params = model_params();
  params.index = "IVF2,SQ8";
  Collection c = CollectionAccess::create(kDamagedPath, params, {}, on_disk(disk, vfs));
  Draw draw(seed);
  for (int i = 0; i < 20; ++i) random_call(c, sound.model, draw);
  for (int i = 0; i < 2; ++i) {
    c.compact();
    std::vector<std::pair<int64_t, ModelItem>> items;
    for (int64_t k = 0; k < 30; ++k) items.emplace_back(sound.model.next_id + k, random_item(draw));
    for (const auto& [id, item] : items) sound.model.put(id, item);
    ModelBatch batch = model_batch(items);
    c.add(with_vectors(batch));
  }
  for (int i = 0; i < 3; ++i) random_call(c, sound.model, draw);
  c.close();
  for (const auto& [path, bytes] : disk.content()) {
    if (path.find("/readers") == std::string::npos) sound.content[path] = bytes;
  }
  return sound;
}

enum class Outcome { refused, named, unseen_and_harmless, unseen };

Outcome outcome_of(const SimulatedDisk::Content& content, const CollectionModel& model, const std::string& damaged) {
  SimulatedDisk disk(content);
  const SimulatedVfs vfs(disk);
  OpenParams params;
  params.mode = OpenMode::read;
  try {
    const Collection c = CollectionAccess::open(kDamagedPath, params, on_disk(disk, vfs));
    bool same = false;
    try {
      const std::vector<float> query{1, 2, 3, 4};
      (void)c.search(MatrixView(query.data(), 1, kModelDimension));
      same = model_of(c.view()).same_items(model);
    } catch (const Error&) {
    }
    const VerifyReport report = c.verify();
    for (const VerifyProblem& problem : report.problems) {
      if (problem.file == damaged) return Outcome::named;
    }
    return same ? Outcome::unseen_and_harmless : Outcome::unseen;
  } catch (const Error&) {
    return Outcome::refused;
  }
}

void flip_bytes(int64_t step) {
  const Sound sound = sound_collection(4);
  std::map<std::string, std::map<Outcome, int64_t>> outcomes;
  for (const auto& [path, bytes] : sound.content) {
    if (bytes.empty() || path.ends_with("/lock")) continue;
    const bool segment = path.find("/segments/") != std::string::npos;
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(step)) {
      SimulatedDisk::Content damaged = sound.content;
      damaged[path][at] = static_cast<char>(damaged[path][at] ^ (1 << (at % 8)));
      const Outcome outcome = outcome_of(damaged, sound.model, path);
      ++outcomes[path][outcome];
      ASSERT_NE(outcome, Outcome::unseen) << path << ", byte " << at;
      if (segment) {
        ASSERT_NE(outcome, Outcome::unseen_and_harmless) << path << ", byte " << at;
      }
    }
    // A segment's values go unseen until verify(), which then names it.
    if (segment) {
      EXPECT_GT(outcomes[path][Outcome::named], 0) << path;
    }
  }
}

TEST(CollectionDamage, FlippedBytesAreNamed) { flip_bytes(61); }
TEST(SlowCollectionDamage, FlippedBytesAreNamed) { flip_bytes(1); }

TEST(CollectionDamage, CutRemovedDoubledAndExchangedFilesAreNamed) {
  const Sound sound = sound_collection(4);
  const Sound other = sound_collection(9);
  for (const auto& file : sound.content) {
    const std::string& path = file.first;
    const std::string& bytes = file.second;
    if (bytes.empty() || path.ends_with("/lock")) continue;
    const auto damaged_is_seen = [&](const std::string& what, const SimulatedDisk::Content& damaged) {
      const Outcome outcome = outcome_of(damaged, sound.model, path);
      // SQLite may not use the last bytes of its file.
      const bool harmless = outcome == Outcome::unseen_and_harmless && path.ends_with(".sqlite");
      EXPECT_TRUE(outcome == Outcome::refused || outcome == Outcome::named || harmless) << path << " was " << what;
    };
    for (const size_t size : {size_t{0}, size_t{1}, size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
      SimulatedDisk::Content damaged = sound.content;
      damaged[path].resize(size);
      damaged_is_seen("cut to " + std::to_string(size), damaged);
    }
    SimulatedDisk::Content damaged = sound.content;
    damaged.erase(path);
    damaged_is_seen("removed", damaged);
    if (path.find("/segments/") == std::string::npos) continue;  // SQLite ignores what follows its last page
    damaged = sound.content;
    damaged[path] += bytes;
    damaged_is_seen("doubled", damaged);
    for (const auto& [name, others] : other.content) {
      if (name.find("/segments/") == std::string::npos || others == bytes) continue;
      damaged = sound.content;
      damaged[path] = others;
      damaged_is_seen("exchanged with " + name, damaged);
    }
  }
  // The database of another collection names other files.
  SimulatedDisk::Content damaged = sound.content;
  damaged[kDamagedPath + "/collection.sqlite"] = other.content.at(kDamagedPath + "/collection.sqlite");
  EXPECT_EQ(outcome_of(damaged, sound.model, "segments"), Outcome::refused);
}

}  // namespace
}  // namespace kith
