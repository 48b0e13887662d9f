#include "collection/write_lock.hpp"

#include <kith/error.hpp>

#include "io/file_error.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <string>
#include <thread>

namespace kith {
namespace {

std::string who_writes() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}, since {:%Y-%m-%d %H:%M:%S} UTC\n", this_process(), host.data(),
                     fmt::gmtime(std::time(nullptr)));
}

std::string words_in(Disk& disk, const std::string& path) {
  try {
    const std::unique_ptr<DiskFile> file = disk.open(path);
    constexpr int64_t kLongest = 400;
    std::string text(static_cast<size_t>(std::min(file->size(), kLongest)), '\0');
    file->read(0, text.data(), static_cast<int64_t>(text.size()));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.empty() ? "another process" : printable(text);
  } catch (const Error&) {
    return "another process";
  }
}

}  // namespace

std::unique_ptr<DiskLock> take_write_lock(const CollectionDirectory& directory, std::chrono::milliseconds timeout,
                                          const Resources& resources) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  Disk& disk = directory.disk();
  for (;;) {
    if (std::unique_ptr<DiskLock> lock = disk.try_lock(directory.lock_file(), LockKind::alone)) {
      const std::unique_ptr<DiskFile> file = disk.create(directory.lock_file());
      const std::string words = who_writes();
      file->write(0, words.data(), static_cast<int64_t>(words.size()));
      return lock;
    }
    if (std::chrono::steady_clock::now() >= end) {
      throw InvalidState(fmt::format("'{}' is open for writing by {}; close it there, wait with a timeout, or open it "
                                     "with mode read", directory.path(), words_in(disk, directory.lock_file())));
    }
    resources.check_cancelled();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace kith
