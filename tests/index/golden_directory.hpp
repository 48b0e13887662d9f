// A directory in memory where the machine has one: files are synced when they are written, which takes a disk 10 ms
// each, and the golden recipes write hundreds.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include <stdlib.h>
#include <unistd.h>

namespace kith::testing {

class GoldenDirectory {
 public:
  GoldenDirectory() {
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    path_ = (memory ? std::string("/dev/shm") : std::filesystem::temp_directory_path().string()) + "/kith-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary directory could be made: " + path_);
  }
  ~GoldenDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  GoldenDirectory(const GoldenDirectory&) = delete;
  GoldenDirectory& operator=(const GoldenDirectory&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace kith::testing
