// The real disk, and that the simulated one keeps and loses what a disk does.
#include "io/disk.hpp"

#include <kith/error.hpp>

#include "io/simulated_disk.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace kith {
namespace {

using testing::Crash;
using testing::DiskCall;
using testing::Loss;
using testing::SimulatedDisk;
using testing::TemporaryDirectory;
using testing::thrown;

std::string text_in(Disk& disk, const std::string& path) {
  const auto file = disk.open(path);
  std::string text(static_cast<size_t>(file->size()), '\0');
  file->read(0, text.data(), file->size());
  return text;
}

void write_file(Disk& disk, const std::string& path, const std::string& text) {
  const auto file = disk.create(path);
  file->reserve(static_cast<int64_t>(text.size()));
  file->write(0, text.data(), static_cast<int64_t>(text.size()));
  file->sync();
}

// What both disks do alike.
void use(Disk& disk, const std::string& folder) {
  disk.make_folder(folder);
  disk.make_folder(folder);
  write_file(disk, folder + "/b", "bytes");
  write_file(disk, folder + "/a", "");
  EXPECT_EQ(disk.list(folder), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(text_in(disk, folder + "/b"), "bytes");
  disk.rename(folder + "/b", folder + "/c");
  disk.sync_folder(folder);
  EXPECT_FALSE(disk.exists(folder + "/b"));
  EXPECT_EQ(text_in(disk, folder + "/c"), "bytes");
  disk.remove(folder + "/a");
  disk.remove(folder + "/a");
  EXPECT_EQ(disk.list(folder), std::vector<std::string>{"c"});
  EXPECT_GT(disk.free_bytes(folder), 0);
  char beyond[8];
  EXPECT_THROW(disk.open(folder + "/c")->read(2, beyond, 8), CorruptFile);
  const auto error = thrown<IoError>([&] { (void)disk.open(folder + "/none"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ENOENT);
  auto lock = disk.try_lock(folder + "/lock", LockKind::alone);
  EXPECT_NE(lock, nullptr);
  EXPECT_EQ(disk.try_lock(folder + "/lock", LockKind::alone), nullptr);
  EXPECT_EQ(disk.try_lock(folder + "/lock", LockKind::shared), nullptr);
  lock = nullptr;
  lock = disk.try_lock(folder + "/lock", LockKind::shared);
  EXPECT_NE(lock, nullptr);
  EXPECT_NE(disk.try_lock(folder + "/lock", LockKind::shared), nullptr);
  EXPECT_EQ(disk.try_lock(folder + "/lock", LockKind::alone), nullptr);
  lock = nullptr;
  EXPECT_NE(disk.try_lock(folder + "/lock", LockKind::alone), nullptr);
}

TEST(Disk, TheRealOne) {
  const TemporaryDirectory directory;
  use(real_disk(), directory.path("some/folder"));
  directory.write("file", "x");
  EXPECT_THROW(real_disk().make_folder(directory.path("file")), IoError);
  EXPECT_THROW((void)real_disk().list(directory.path("none")), IoError);
}

TEST(Disk, TheSimulatedOne) {
  SimulatedDisk disk;
  use(disk, "folder");
  disk.set_shortest(2);
  use(disk, "other");
}

TEST(Disk, ACrashLosesWhatWasNotSynced) {
  for (const Loss loss : {Loss::all_that_is_not_synced, Loss::bytes_that_are_not_synced}) {
    SimulatedDisk disk;
    write_file(disk, "f/kept", "kept");
    disk.sync_folder("f");
    disk.create("f/kept")->write(0, "new", 3);
    write_file(disk, "f/fresh", "fresh");
    disk.crash(loss);
    if (loss == Loss::all_that_is_not_synced) {
      EXPECT_EQ(disk.list("f"), std::vector<std::string>{"kept"});
      EXPECT_EQ(disk.content("f/kept"), "kept");
    } else {
      EXPECT_EQ(disk.content("f/kept"), "");
      EXPECT_EQ(disk.content("f/fresh"), "fresh");
    }
  }
}

TEST(Disk, FaultsComeWhereTheyAreSet) {
  SimulatedDisk disk;
  disk.set_fault({.at = 1, .code = EIO, .kind = DiskCall::sync});
  write_file(disk, "f/a", "a");
  EXPECT_THROW(write_file(disk, "f/b", "b"), IoError);
  write_file(disk, "f/c", "c");
  disk.set_fault({.at = 0, .code = 0, .kind = DiskCall::rename});
  EXPECT_THROW(disk.rename("f/c", "f/d"), Crash);
  EXPECT_THROW(disk.sync_folder("f"), Crash);
  disk.crash(Loss::bytes_that_are_not_synced);
  EXPECT_TRUE(disk.exists("f/c"));
  disk.set_capacity(4);
  const auto full = thrown<IoError>([&] { write_file(disk, "f/e", "too much"); });
  ASSERT_TRUE(full);
  EXPECT_EQ(full->code(), ENOSPC);
}

}  // namespace
}  // namespace kith
