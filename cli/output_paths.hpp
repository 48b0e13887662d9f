// Refuses outputs that would destroy an input or one another, before any work is done.
#pragma once

#include <string>
#include <vector>

namespace kith::cli {

struct NamedPath {
  std::string name;  // in error messages: "--out-ids"
  std::string path;
};

// Creates the folder, before work begins, unless it exists. IoError.
void make_output_folder(const std::string& path);

// InvalidArgument for two names of the same file.
void check_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs);

}  // namespace kith::cli
