#include "io/file_list.hpp"

#include <kith/error.hpp>

#include "io/file_error.hpp"
#include "io/file_format.hpp"

#include <fmt/format.h>

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace kith {
namespace {

bool exists(const std::string& file) {
  struct stat found {};
  return ::stat(file.c_str(), &found) == 0;
}

}  // namespace

bool is_file_pattern(const std::string& path) {
  return path.find_first_of("*?[") != std::string::npos && !exists(without_dataset(path));
}

std::vector<std::string> matching_files(const std::string& pattern) {
  const std::string files = without_dataset(pattern);
  glob_t found{};
  const int code = ::glob(files.c_str(), GLOB_NOSORT | GLOB_ERR, nullptr, &found);
  const std::unique_ptr<glob_t, void (*)(glob_t*)> freed(&found, ::globfree);
  if (code == GLOB_NOMATCH) {
    throw IoError(fmt::format("no file matches the pattern '{}'", pattern), pattern, ENOENT);
  }
  if (code != 0) throw_io_error("list the files of", pattern, code == GLOB_NOSPACE ? ENOMEM : errno);
  std::vector<std::string> paths;
  for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  std::sort(paths.begin(), paths.end());
  for (std::string& path : paths) path += pattern.substr(files.size());
  return paths;
}

}  // namespace kith
