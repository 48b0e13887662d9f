// A directory of its own for a test, removed with all it holds; and whole files in and out of it.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

namespace kith::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "kith-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory could be made: " + name);
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }

  // Returns the whole path.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary | std::ios::trunc) << bytes;
    return path(name);
  }

  // In place of what the file held. A file that is emptied and filled again goes to the disk when it is closed, which
  // takes milliseconds; this one does not, for tests that write thousands.
  std::string overwrite(const std::string& name, std::string_view bytes) const {
    const int file = ::open(path(name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const auto size = static_cast<off_t>(bytes.size());
    const bool written =
        file >= 0 && ::pwrite(file, bytes.data(), bytes.size(), 0) == size && ::ftruncate(file, size) == 0;
    if (file >= 0) ::close(file);
    if (!written) throw std::runtime_error("cannot write " + path(name));
    return path(name);
  }

  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) found.insert(entry.path().filename());
    return found;
  }

 private:
  std::string path_;
};

}  // namespace kith::testing
