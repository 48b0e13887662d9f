// Files that only one process reads: those of killed ones are removed by the next, those of living ones stay.
#include "io/passing_files.hpp"

#include "io/atomic_file_writer.hpp"
#include "io/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace kith {
namespace {

using testing::TemporaryDirectory;

std::vector<std::string> files_in(const TemporaryDirectory& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path(""))) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void write_to(const std::string& path) { std::ofstream(path) << "some bytes"; }

TEST(PassingFiles, ThoseOfAKilledProcessAreRemovedAndThoseOfALivingOneStay) {
  const TemporaryDirectory directory;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    PassingFiles files(directory.path("x.kith"));
    write_to(files.next());
    write_to(files.next());
    (void)!::write(ready[1], "r", 1);
    for (;;) ::pause();
  }
  char told = 0;
  ASSERT_EQ(::read(ready[0], &told, 1), 1);
  EXPECT_EQ(files_in(directory).size(), 3U);
  remove_left_behind(directory.path(""));
  EXPECT_EQ(files_in(directory).size(), 3U);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  remove_left_behind(directory.path(""));
  EXPECT_TRUE(files_in(directory).empty());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(PassingFiles, NothingIsLeftOfOneThatEnds) {
  const TemporaryDirectory directory;
  {
    PassingFiles files(directory.path("x.kith"));
    const std::string one = files.next();
    EXPECT_NE(one, files.next());
    EXPECT_EQ(files_in(directory).size(), 1U);
  }
  EXPECT_TRUE(files_in(directory).empty());
}

TEST(PassingFiles, FilesOfOthersAreLeftAlone) {
  const TemporaryDirectory directory;
  const std::vector<std::string> others{".kith-0123456789abcdeg.tmp", ".kith-0123456789abcdef.run.tmp.bak", ".kith-1.run.tmp",
                                        "kith-0123456789abcdef.run.tmp"};
  for (const std::string& name : others) write_to(directory.path(name));
  write_to(directory.path(".kith-0123456789abcdef.run.tmp"));  // as they were called before there were marks
  write_to(directory.path(".kith-0123456789abcdef.12.run.tmp"));
  write_to(directory.path(".kith-0123456789abcdef.tmp"));
  { const PassingFiles files(directory.path("x.kith")); }
  std::vector<std::string> left = others;
  std::sort(left.begin(), left.end());
  EXPECT_EQ(files_in(directory), left);
}

}  // namespace
}  // namespace kith
