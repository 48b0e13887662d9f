// Writing files: what a path shows at every moment, what is refused, and what remains after an error.
#include "io/atomic_file_writer.hpp"

#include <kith/error.hpp>

#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

namespace kith {
namespace {

using testing::expect_io_error;
using testing::TemporaryDirectory;
using testing::thrown;
using Names = std::set<std::string>;

void write_all(AtomicFileWriter& writer, const std::string& bytes) {
  writer.write(bytes.data(), static_cast<int64_t>(bytes.size()));
}

// While it lives no file may grow beyond `bytes`: writes fail with EFBIG, as they do with ENOSPC on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_limit_{};
  void (*old_handler_)(int);
};

TEST(AtomicFileWriter, WritesSmallAndLargePieces) {
  const TemporaryDirectory directory;
  std::string expected;
  AtomicFileWriter writer(directory.path("file"));
  for (const size_t length : {0UL, 1UL, 1000UL, 200000UL, 62144UL, 1UL, 262143UL, 262144UL, 1000000UL, 3UL}) {
    const std::string piece(length, static_cast<char>('a' + length % 23));
    write_all(writer, piece);
    expected += piece;
  }
  writer.commit();
  EXPECT_TRUE(directory.read("file") == expected);
  EXPECT_EQ(directory.names(), Names{"file"});
}

// Some megabytes at once are written by several threads.
TEST(AtomicFileWriter, WritesMegabytesInOrder) {
  const TemporaryDirectory directory;
  std::string bytes(9'000'001, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  AtomicFileWriter file(directory.path("large"));
  file.write("begin", 5);
  file.write(bytes.data(), static_cast<int64_t>(bytes.size()));
  file.write("middle", 6);
  file.write_made(static_cast<int64_t>(bytes.size()), [&](int64_t offset, int64_t count, std::byte* out) {
    std::memcpy(out, bytes.data() + offset, static_cast<size_t>(count));
  });
  file.write_made(0, [](int64_t, int64_t, std::byte*) { FAIL(); });
  file.write("end", 3);
  file.commit();
  EXPECT_TRUE(directory.read("large") == "begin" + bytes + "middle" + bytes + "end");
}

// Whichever thread was to make the bytes that failed.
TEST(AtomicFileWriter, BytesThatCannotBeMadeEndTheWriter) {
  constexpr int64_t kBytes = int64_t{5} << 20;
  for (const int64_t fails_at : {int64_t{0}, kBytes / 2, kBytes - 1}) {
    const TemporaryDirectory directory;
    directory.write("file", "old");
    AtomicFileWriter writer(directory.path("file"));
    const auto fill = [&](int64_t offset, int64_t count, std::byte* out) {
      if (offset <= fails_at && fails_at < offset + count) throw InvalidArgument("no such value");
      std::memset(out, 1, static_cast<size_t>(count));
    };
    EXPECT_THROW(writer.write_made(kBytes, fill), InvalidArgument);
    EXPECT_THROW(writer.commit(), InvalidState);
    EXPECT_EQ(directory.read("file"), "old");
    EXPECT_EQ(directory.names(), Names{"file"});
  }
}

TEST(AtomicFileWriter, ShowsTheOldFileUntilCommit) {
  const TemporaryDirectory directory;
  directory.write("file", "old");
  AtomicFileWriter writer(directory.path("file"));
  write_all(writer, std::string(1 << 20, 'n'));
  EXPECT_EQ(directory.read("file"), "old");
  EXPECT_EQ(directory.names().size(), 2U);
  writer.commit();
  EXPECT_EQ(directory.read("file").size(), 1U << 20);
  EXPECT_EQ(directory.names(), Names{"file"});
}

TEST(AtomicFileWriter, LeavesNothingWithoutCommit) {
  const TemporaryDirectory directory;
  directory.write("file", "old");
  for (const char* name : {"file", "new"}) {
    AtomicFileWriter writer(directory.path(name));
    write_all(writer, "unfinished");
  }
  EXPECT_EQ(directory.read("file"), "old");
  EXPECT_EQ(directory.names(), Names{"file"});
}

TEST(AtomicFileWriter, TakesItsModeFromTheUmask) {
  const TemporaryDirectory directory;
  const mode_t old_mask = ::umask(027);
  AtomicFileWriter writer(directory.path("file"));
  ::umask(old_mask);
  writer.commit();
  struct stat info {};
  ASSERT_EQ(::stat(directory.path("file").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
}

TEST(AtomicFileWriter, IsDoneAfterCommit) {
  const TemporaryDirectory directory;
  AtomicFileWriter writer(directory.path("file"));
  writer.commit();
  EXPECT_THROW(write_all(writer, "more"), InvalidState);
  EXPECT_THROW(writer.commit(), InvalidState);
}

TEST(AtomicFileWriter, TwoWritersOfOnePathDoNotMix) {
  const TemporaryDirectory directory;
  AtomicFileWriter first(directory.path("file"));
  AtomicFileWriter second(directory.path("file"));
  write_all(first, "first");
  write_all(second, "second");
  second.commit();
  EXPECT_EQ(directory.read("file"), "second");
  first.commit();
  EXPECT_EQ(directory.read("file"), "first");
}

TEST(AtomicFileWriter, FollowsASymbolicLink) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path("elsewhere"));
  directory.write("elsewhere/file", "old");
  std::filesystem::create_symlink("elsewhere/file", directory.path("link"));
  AtomicFileWriter writer(directory.path("link"));
  write_all(writer, "new");
  writer.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(directory.path("link")));
  EXPECT_EQ(directory.read("elsewhere/file"), "new");
}

TEST(AtomicFileWriter, SurvivesAChangeOfDirectory) {
  const TemporaryDirectory directory;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  AtomicFileWriter writer("file");
  std::filesystem::current_path(before);
  write_all(writer, "here");
  writer.commit();
  EXPECT_EQ(directory.read("file"), "here");
}

TEST(AtomicFileWriter, RefusesWhatIsNoRegularFile) {
  const TemporaryDirectory directory;
  const std::string fifo = directory.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_directory(directory.path("directory"));
  std::filesystem::create_symlink("/dev/full", directory.path("link"));
  const auto open = [](const std::string& path) { return [path] { AtomicFileWriter writer(path); }; };
  expect_io_error(open("/dev/full"), "/dev/full", 0, "it is a character device");
  expect_io_error(open(fifo), fifo, 0, "it is a fifo");
  expect_io_error(open(directory.path("link")), directory.path("link"), 0, "it is a character device");
  expect_io_error(open(directory.path("directory")), directory.path("directory"), EISDIR, "it is a directory");
  EXPECT_EQ(directory.names(), (Names{"fifo", "directory", "link"}));
}

TEST(AtomicFileWriter, RefusesPathsThatLeadNowhere) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("file", "");
  std::filesystem::create_symlink("nothing", directory.path("dangling"));
  const auto open = [](const std::string& path) { return [path] { AtomicFileWriter writer(path); }; };
  expect_io_error(open(directory.path("none/file")), directory.path("none/file"), ENOENT, "No such file or directory");
  expect_io_error(open(file + "/file"), file + "/file", ENOTDIR, "Not a directory");
  expect_io_error(open(directory.path("dangling")), directory.path("dangling"), ENOENT, "symbolic link");
  expect_io_error(open(directory.path(std::string(300, 'x'))), directory.path(std::string(300, 'x')), ENAMETOOLONG,
                  "too long");
  EXPECT_THROW(AtomicFileWriter(std::string("a\0b", 3)), InvalidArgument);
}

TEST(AtomicFileWriter, ATargetThatBecomesADirectoryIsAnError) {
  const TemporaryDirectory directory;
  AtomicFileWriter writer(directory.path("file"));
  std::filesystem::create_directory(directory.path("file"));
  expect_io_error([&] { writer.commit(); }, directory.path("file"), EISDIR, "in the place of");
  EXPECT_EQ(directory.names(), Names{"file"});
  EXPECT_THROW(writer.commit(), InvalidState);
}

TEST(AtomicFileWriter, AFailedWriteLeavesTheOldFileAndEndsTheWriter) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("file", "old");
  const std::string large(1 << 20, 'x');
  {
    AtomicFileWriter writer(path);
    const FileSizeLimit limit(100000);
    expect_io_error([&] { write_all(writer, large); }, path, EFBIG, "cannot write");
    EXPECT_THROW(writer.commit(), InvalidState);
    EXPECT_EQ(directory.names(), Names{"file"});
  }
  {
    AtomicFileWriter writer(path);
    write_all(writer, large.substr(0, 200000));  // still in the buffer: only commit finds out
    const FileSizeLimit limit(100000);
    expect_io_error([&] { writer.commit(); }, path, EFBIG, "cannot write");
  }
  EXPECT_EQ(directory.read("file"), "old");
  EXPECT_EQ(directory.names(), Names{"file"});
}

// A new temporary file is there before it is locked: whoever looks then for files left behind must not take it away.
TEST(AtomicFileWriter, OthersLookForFilesLeftBehindMeanwhile) {
  const TemporaryDirectory directory;
  std::atomic<bool> ended = false;
  std::jthread other([&] {
    while (!ended) remove_left_behind(directory.path(""));
  });
  constexpr int kFiles = 300;
  for (int i = 0; i < kFiles; ++i) {
    AtomicFileWriter writer(directory.path("file"));
    write_all(writer, std::to_string(i));
    ASSERT_NO_THROW(writer.commit_unsynced()) << i;
  }
  ended = true;
  EXPECT_EQ(directory.read("file"), std::to_string(kFiles - 1));
}

}  // namespace
}  // namespace kith
