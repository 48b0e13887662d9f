// Several files named at once: a pattern with *, ? and [...], as the shell has them.
#pragma once

#include <string>
#include <vector>

namespace kith {

// Whether the path is a pattern: it holds one of *, ? and [, and no file has exactly this name.
bool is_file_pattern(const std::string& path);

// The files that match, in the order of their names, byte by byte: part-10 comes before part-9, part-09 before part-10.
// Behind a pattern of HDF5 files "::" and a dataset may stand, which is that of each. IoError where none matches.
std::vector<std::string> matching_files(const std::string& pattern);

}  // namespace kith
