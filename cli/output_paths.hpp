// Refuses outputs that would destroy an input or one another, before any work is done.
#pragma once

#include <string>
#include <vector>

namespace kith::cli {

struct NamedPath {
  std::string name;  // "--out-ids", as errors call it
  std::string path;
};

// Made before the work, so that a name that cannot be written costs none; a folder that is there is left as it is. IoError.
void make_output_folder(const std::string& path);

// Throws InvalidArgument for two names of one file.
void check_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs);

}  // namespace kith::cli
