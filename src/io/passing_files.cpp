#include "io/passing_files.hpp"

#include <kith/error.hpp>

#include "io/atomic_file_writer.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace kith {

PassingFiles::PassingFiles(const std::string& beside) : folder_(std::filesystem::path(beside).parent_path().string()) {
  if (folder_.empty()) folder_ = ".";
  remove_left_beside(beside);
  make_mark();
}

PassingFiles::~PassingFiles() { ::unlink(mark_.c_str()); }

void PassingFiles::make_mark() {
  constexpr int kAttempts = 16;
  constexpr mode_t kMode = 0600;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    uint64_t random = 0;
    if (::getentropy(&random, sizeof(random)) != 0) throw_io_error("name a temporary file beside", folder_, errno);
    name_ = fmt::format("{}/.kith-{:016x}", folder_, random);
    mark_ = name_ + ".tmp";
    held_ = FileDescriptor(::open(mark_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
    if (!held_.is_open()) {
      if (errno == EEXIST || errno == EINTR) continue;
      throw_io_error("make a temporary file in", folder_, errno);
    }
    if (lock_while_open(held_)) return;
  }
  throw_io_error("make a temporary file in", folder_, EEXIST);
}

std::string PassingFiles::next() { return fmt::format("{}.{}.run.tmp", name_, count_++); }

}  // namespace kith
