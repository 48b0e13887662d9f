#include "output_paths.hpp"

#include <kith/error.hpp>
#include <kith/file_info.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace kith::cli {
namespace {

namespace fs = std::filesystem;

// Resolves links, "..", and different spellings of a directory; the files need not exist.
bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::exists(a, error) && fs::exists(b, error)) return fs::equivalent(a, b, error);
  const fs::path a_whole = fs::weakly_canonical(fs::absolute(a, error), error);
  const fs::path b_whole = fs::weakly_canonical(fs::absolute(b, error), error);
  return !a_whole.empty() && a_whole == b_whole;
}

void check_different(const NamedPath& output, const NamedPath& other) {
  if (!same_file(file_of(output.path), file_of(other.path))) return;  // one file, whichever of its datasets
  throw InvalidArgument(fmt::format("{} {} and {} {} are the same file; give the output another name", output.name,
                                    output.path, other.name, other.path));
}

}  // namespace

void make_output_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && !fs::is_directory(path, error)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) {
    throw IoError(fmt::format("cannot make the folder '{}': {}", path, error.message()), path, error.value());
  }
}

void check_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const NamedPath& input : inputs) {
      for (const std::string& file : files_of(input.path)) check_different(outputs[i], {input.name, file});
    }
    for (size_t j = 0; j < i; ++j) check_different(outputs[i], outputs[j]);
  }
}

}  // namespace kith::cli
