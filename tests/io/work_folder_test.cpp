// Work that goes on: after a crash at any call, beside damaged, foreign and half-written files, on a full disk.
#include "io/work_folder.hpp"

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
using testing::expect_refusal;
using testing::Loss;
using testing::SimulatedDisk;
using testing::TemporaryDirectory;
using testing::thrown;

WorkManifest manifest_of(int64_t k = 10) {
  WorkManifest manifest;
  manifest.set("work", "a graph");
  manifest.set("k", k);
  manifest.set("source", "parts/*.npy");
  return manifest;
}

std::span<const std::byte> bytes_in(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

void write_step(WorkFolder& folder, const std::string& name, const std::vector<std::string>& sections) {
  StepWriter writer(folder, name, 100);
  for (const std::string& section : sections) writer.add(bytes_in(section));
  EXPECT_EQ(writer.sections(), static_cast<int64_t>(sections.size()));
  writer.commit();
}

std::vector<std::string> read_step(const StepFile& step) {
  std::vector<std::string> sections;
  for (int64_t i = 0; i < step.sections(); ++i) {
    sections.emplace_back(static_cast<size_t>(step.bytes(i)), '\0');
    step.read(i, sections.back().data());
  }
  return sections;
}

const std::vector<std::string> kSections{"first section", "", std::string(5000, 'x')};

TEST(WorkManifest, IsReadAsItWasWritten) {
  const WorkManifest manifest = manifest_of();
  const WorkManifest again = WorkManifest::parse(manifest.text(), "m");
  EXPECT_EQ(again.lines(), manifest.lines());
  EXPECT_EQ(*again.find("k"), "10");
  EXPECT_EQ(again.find("none"), nullptr);
  EXPECT_EQ(again.hash(), manifest.hash());
  EXPECT_NE(again.hash(), manifest_of(11).hash());
}

TEST(WorkManifest, DamageAndOtherVersionsAreRefused) {
  const std::string text = manifest_of().text();
  for (size_t cut = 0; cut < text.size(); ++cut) {
    EXPECT_THROW(WorkManifest::parse(text.substr(0, cut), "m"), Error) << cut;
  }
  for (size_t at = 0; at < text.size(); ++at) {
    std::string flipped = text;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    EXPECT_THROW(WorkManifest::parse(flipped, "m"), Error) << at;
  }
  std::string newer = text;
  newer.replace(newer.find("version 1"), 9, "version 2");
  expect_refusal<Unsupported>([&] { WorkManifest::parse(newer, "m"); }, "is of version 2");
}

TEST(WorkFolder, StepsAreThereAgain) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("work");
  {
    WorkFolder folder(real_disk(), path, manifest_of(), Resources());
    EXPECT_FALSE(folder.resumed());
    write_step(folder, "step.1", kSections);
    StepWriter abandoned(folder, "step.2");
    abandoned.add(bytes_in("half"));
  }
  directory.write("work/step.3.part", "what a killed process left");
  WorkFolder folder(real_disk(), path, manifest_of(), Resources());
  EXPECT_TRUE(folder.resumed());
  EXPECT_EQ(read_step(folder.find("step.1").value()), kSections);
  EXPECT_FALSE(folder.find("step.2"));
  EXPECT_EQ(real_disk().list(path), (std::vector<std::string>{"lock", "manifest", "step.1"}));
  expect_refusal<InvalidState>([&] { WorkFolder second(real_disk(), path, manifest_of(), Resources()); },
                               "another process works in the folder");
  folder.clear();
  EXPECT_TRUE(real_disk().list(path).empty());
}

TEST(StepStripes, EveryByteHasOnePlace) {
  for (const StepStripes stripes : {StepStripes{3, 2}, StepStripes{1, 5}, StepStripes{7, 3}}) {
    for (const int64_t total : {0, 1, 6, 20, 21, 22, 43}) {
      std::vector<std::vector<int>> seen;
      for (int64_t file = 0; file < stripes.files; ++file) {
        seen.emplace_back(static_cast<size_t>(stripes.bytes_in(file, total)), 0);
      }
      int64_t next = 0;
      stripes.for_runs(0, total, [&](size_t file, int64_t offset, int64_t bytes) {
        for (int64_t i = 0; i < bytes; ++i, ++next) ++seen.at(file).at(static_cast<size_t>(offset + i));
        int64_t first_file = -1;  // that byte by itself is in the same place
        stripes.for_runs(next - bytes, 1, [&](size_t one, int64_t, int64_t) { first_file = static_cast<int64_t>(one); });
        EXPECT_EQ(first_file, static_cast<int64_t>(file));
      });
      EXPECT_EQ(next, total);
      for (const std::vector<int>& file : seen) EXPECT_EQ(file, std::vector<int>(file.size(), 1));
    }
  }
}

TEST(WorkFolder, AStepInSeveralFilesIsReadAsItWasPut) {
  SimulatedDisk disk;
  WorkFolder folder(disk, "w", manifest_of(), Resources());
  folder.divide_steps_by(40);
  std::vector<std::string> sections;
  std::vector<int64_t> sizes;
  for (int i = 0; i < 50; ++i) {
    sections.emplace_back(static_cast<size_t>(i * 7 % 23), static_cast<char>('a' + i % 26));
    sizes.push_back(static_cast<int64_t>(sections.back().size()));
  }
  {
    StepWriter writer(folder, "step");
    writer.lay_out(sizes);
    for (int64_t i = 49; i >= 40; --i) writer.put(i, bytes_in(sections[static_cast<size_t>(i)]));
    std::string run;
    for (size_t i = 0; i < 40; ++i) run += sections[i];
    writer.put(0, 40, bytes_in(run));
    writer.commit();
  }
  EXPECT_TRUE(disk.exists("w/step.data7"));
  const StepFile step = folder.open("step");
  EXPECT_EQ(read_step(step), sections);
  std::string some(static_cast<size_t>(step.bytes(3, 47)), '\0');
  step.read(3, 47, some.data());
  std::string expected;
  for (size_t i = 3; i < 47; ++i) expected += sections[i];
  EXPECT_EQ(some, expected);
  std::string damaged = disk.content("w/step.data5");
  damaged[3] = static_cast<char>(damaged[3] ^ 1);
  disk.set_content("w/step.data5", damaged);
  std::string all(static_cast<size_t>(step.bytes(0, 50)), ' ');
  EXPECT_THROW(folder.open("step").read(0, 50, all.data()), DamagedStep);
}

TEST(WorkFolder, OtherWorkIsRefusedWithWhatDiffers) {
  SimulatedDisk disk;
  { WorkFolder folder(disk, "w", manifest_of(), Resources()); }
  const auto open_with = [&](const WorkManifest& manifest) {
    return [&disk, manifest] { WorkFolder folder(disk, "w", manifest, Resources()); };
  };
  expect_refusal<InvalidArgument>(open_with(manifest_of(11)), "k is 11, and was 10");
  WorkManifest more = manifest_of();
  more.set("metric", "l2");
  expect_refusal<InvalidArgument>(open_with(more), "metric is l2, and was not there");
  expect_refusal<InvalidArgument>(open_with(WorkManifest()), "work was a graph, and is not there");
  disk.set_content("w/manifest", "");
  expect_refusal<CorruptFile>(open_with(manifest_of()), "no work folder's manifest");
  disk.set_content("v/photo.jpg", "somebody's");
  expect_refusal<InvalidArgument>([&] { WorkFolder folder(disk, "v", manifest_of(), Resources()); }, "photo.jpg");
  disk.set_content("u/film.part", "somebody's");
  expect_refusal<InvalidArgument>([&] { WorkFolder folder(disk, "u", manifest_of(), Resources()); }, "film.part");
  EXPECT_EQ(disk.list("u"), std::vector<std::string>{"film.part"});
}

TEST(WorkFolder, PartsAreToldApart) {
  const TemporaryDirectory directory;
  SimulatedDisk simulated;
  for (Disk* disk : std::initializer_list<Disk*>{&simulated, &real_disk()}) {
    const std::string path = directory.path("work");
    const auto open_as = [&](const WorkPart& part) {
      return [&, part] { WorkFolder folder(*disk, path, manifest_of(), Resources(), part); };
    };
    {
      WorkFolder second(*disk, path, manifest_of(), Resources(), {2, 3});
      EXPECT_FALSE(second.leads());
      expect_refusal<InvalidState>(open_as({}), "another process works in the folder");
      expect_refusal<InvalidState>(open_as({2, 3}), "part 2 of 3 is running");
      expect_refusal<InvalidState>(open_as({2, 4}), "is being worked in by part 2of3, and this is part 2of4");
      WorkFolder first(*disk, path, manifest_of(), Resources(), {1, 3});
      EXPECT_TRUE(first.leads());
      // What one is writing, the other leaves alone when it begins anew.
      StepWriter writer(second, "a");
      open_as({3, 3})();
      writer.add(bytes_in("a"));
      writer.commit();
      EXPECT_TRUE(first.find("a"));
    }
    {
      WorkFolder alone(*disk, path, manifest_of(), Resources());
      EXPECT_EQ(disk->list(path), (std::vector<std::string>{"a", "lock", "manifest"}));
      expect_refusal<InvalidState>(open_as({1, 3}), "and not as a part of the work");
      expect_refusal<InvalidState>([&] { alone.wait_until([] { return std::string(); }); throw InvalidState("ends"); },
                                   "ends");
    }
    expect_refusal<InvalidArgument>(open_as({4, 3}), "part = '4/3'");
  }
}

TEST(WorkFolder, TheLastPartClearsIt) {
  SimulatedDisk disk;
  for (const bool keep : {false, true}) {
    for (const int64_t number : {2, 1, 3}) {
      WorkFolder folder(disk, "w", manifest_of(), Resources(), {number, 3, false});
      if (folder.leads()) write_step(folder, "a", {"a"});
      if (number == 2) {
        EXPECT_THROW(folder.finish(bytes_in("told"), keep), Unfinished);
        continue;
      }
      folder.finish(bytes_in("told"), keep);
    }
    {
      WorkFolder folder(disk, "w", manifest_of(), Resources(), {2, 3});
      EXPECT_EQ(read_step(folder.done().value()), std::vector<std::string>{"told"});
      EXPECT_THROW(folder.wait_until([] { return std::string("more"); }), WorkDone);
      folder.finish({}, keep);
    }
    EXPECT_EQ(disk.list("w"), (keep ? std::vector<std::string>{"a", "manifest"} : std::vector<std::string>{}));
  }
}

TEST(WorkPart, Words) {
  const WorkPart part = parse_work_part("2/3");
  EXPECT_EQ(part.number, 2);
  EXPECT_EQ(part.count, 3);
  EXPECT_TRUE(part.wait);
  for (const char* text : {"", "2", "0/3", "4/3", "2/", "/3", "a/3", "2/3 ", "2/3/4", "-1/3", "99999999999999999999/3"}) {
    EXPECT_THROW(parse_work_part(text), InvalidArgument) << text;
  }
}

TEST(WorkFolder, DamagedStepsAreMadeAgain) {
  SimulatedDisk disk;
  WorkFolder folder(disk, "w", manifest_of(), Resources());
  write_step(folder, "a", kSections);
  write_step(folder, "b", {"another"});
  const std::string whole = disk.content("w/a");
  for (size_t at = 0; at < whole.size(); at += at < 5000 ? 97 : 1) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 16);
    disk.set_content("w/a", flipped);
    const std::optional<StepFile> step = folder.find("a");
    if (!step) {
      EXPECT_FALSE(disk.exists("w/a"));  // its end is damaged: removed
      continue;
    }
    const auto error = thrown<DamagedStep>([&] { read_step(*step); });
    ASSERT_TRUE(error) << at;
    EXPECT_EQ(error->step(), "a");
  }
  for (size_t cut = 0; cut < whole.size(); cut += 61) {
    disk.set_content("w/a", whole.substr(0, cut));
    EXPECT_FALSE(folder.find("a"));
  }
  disk.set_content("w/a", disk.content("w/b"));  // exchanged
  EXPECT_FALSE(folder.find("a"));
  { WorkFolder other(disk, "o", manifest_of(11), Resources()); write_step(other, "b", {"another"}); }
  disk.set_content("w/b", disk.content("o/b"));  // of other work
  EXPECT_FALSE(folder.find("b"));
}

// Another part made the step, and does not check it again.
TEST(WorkPart, ADamagedStepNamesItsFileOnce) {
  SimulatedDisk disk;
  WorkFolder folder(disk, "w", manifest_of(), Resources(), WorkPart{.number = 1, .count = 2});
  write_step(folder, "a", kSections);
  disk.set_content("w/a", disk.content("w/a").substr(0, 20));
  const auto error = thrown<DamagedStep>([&] { (void)folder.find("a"); });
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(), "'w/a', byte 20: the step has no end");
  EXPECT_EQ(error->path(), "w/a");
  EXPECT_EQ(error->step(), "a");
}

// Three steps, each made where it is not there.
void work(Disk& disk) {
  WorkFolder folder(disk, "w", manifest_of(), Resources());
  for (const char* name : {"a", "b", "c"}) {
    if (!folder.find(name)) write_step(folder, name, {name, std::string(300, name[0])});
  }
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(read_step(folder.find(name).value()), (std::vector<std::string>{name, std::string(300, name[0])}));
  }
}

TEST(WorkFolder, ACrashAtAnyCallLosesNoFinishedStep) {
  SimulatedDisk whole;
  whole.set_fault({.at = INT64_MAX, .code = 0, .kind = {}});
  work(whole);
  const int64_t calls = whole.calls();
  ASSERT_GT(calls, 20);
  for (const Loss loss : {Loss::all_that_is_not_synced, Loss::bytes_that_are_not_synced}) {
    for (int64_t at = 0; at < calls; ++at) {
      SimulatedDisk disk;
      disk.set_shortest(100);
      disk.set_fault({.at = at, .code = 0, .kind = {}});
      EXPECT_THROW(work(disk), Crash);
      disk.crash(loss);
      work(disk);
      for (const char* name : {"w/a", "w/b", "w/c"}) EXPECT_EQ(disk.content(name), whole.content(name)) << at;
    }
  }
}

TEST(WorkFolder, WhatACrashLeavesBesideTheWorkIsRemoved) {
  const auto whole_life = [](Disk& disk) {
    work(disk);
    WorkFolder(disk, "w", manifest_of(), Resources()).finish({}, false);
  };
  SimulatedDisk whole;
  whole.set_fault({.at = INT64_MAX, .code = 0, .kind = {}});
  whole_life(whole);
  int64_t without_work = 0;
  for (int64_t at = 0; at < whole.calls(); ++at) {
    SimulatedDisk disk;
    disk.set_fault({.at = at, .code = 0, .kind = {}});
    EXPECT_THROW(whole_life(disk), Crash);
    disk.crash(Loss::bytes_that_are_not_synced);
    const std::vector<std::string> before = disk.list("w");
    const bool holds_work = WorkFolder::holds_work(disk, "w");
    WorkFolder::remove_remains(disk, "w");
    EXPECT_EQ(disk.list("w"), holds_work ? before : std::vector<std::string>()) << at;
    without_work += before.empty() || holds_work ? 0 : 1;
  }
  EXPECT_GT(without_work, 2);
}

TEST(WorkFolder, OtherFilesAndARunningProcessAreNoRemains) {
  SimulatedDisk disk;
  const WorkFolder running(disk, "w", manifest_of(), Resources());
  disk.remove("w/manifest");
  WorkFolder::remove_remains(disk, "w");
  EXPECT_TRUE(disk.exists("w/lock"));
  disk.make_folder("other");
  disk.set_content("other/lock", "");
  disk.set_content("other/thesis.txt", "years");
  WorkFolder::remove_remains(disk, "other");
  EXPECT_TRUE(disk.exists("other/lock"));
  WorkFolder::remove_remains(disk, "nowhere");
}

TEST(WorkFolder, AnErrorAtAnyCallLeavesWorkThatGoesOn) {
  for (const int code : {EIO, ENOSPC}) {
    for (int64_t at = 0; at < 40; ++at) {
      SimulatedDisk disk;
      disk.set_fault({.at = at, .code = code, .kind = {}});
      try {
        work(disk);
      } catch (const IoError& error) {
        EXPECT_EQ(error.code(), code);
      }
      disk.clear_fault();
      work(disk);
    }
  }
}

TEST(WorkFolder, SpaceIsCountedFirst) {
  SimulatedDisk disk;
  WorkFolder folder(disk, "w", manifest_of(), Resources());
  disk.set_capacity(1000);
  folder.require_space(100);
  const auto full = thrown<IoError>([&] { folder.require_space(5000); });
  ASSERT_TRUE(full);
  EXPECT_EQ(full->code(), ENOSPC);
  EXPECT_THAT(full->what(), ::testing::HasSubstr("(5000 bytes) are needed"));
  expect_refusal<IoError>([&] { StepWriter writer(folder, "a", 5000); }, "not enough space in the work folder 'w'");
}

}  // namespace
}  // namespace kith
