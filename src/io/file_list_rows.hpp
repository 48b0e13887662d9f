// The rows of several files, one file after the other, as a RowReader.
#pragma once

#include <kith/row_reader.hpp>

#include <memory>
#include <string>
#include <vector>

namespace kith {

// Opens every file once, to check that all have one dtype and one number of columns, and closes it again: reads open
// it anew, and keep the 32 used last open, or as many as the process may have. `name` is what errors about all of them
// call them; those about a row name its file. CorruptFile where a file is not as it was when it was looked at.
std::shared_ptr<const RowReader> open_files(const std::vector<std::string>& paths, const std::string& name);

}  // namespace kith
