// Makes errors about a row of several files name the file and the row in it.
#pragma once

#include <kith/vector_file.hpp>

#include "rows/finite_check.hpp"

#include <initializer_list>
#include <string_view>

namespace kith {

// Does work over rows that errors call `what`. If a row is refused and the rows come from several files, the error
// names the file and the row in it.
struct NamedFile {
  std::string_view what;
  const VectorFile& file;
};
template <typename Work>
decltype(auto) naming_files(std::initializer_list<NamedFile> files, const Work& work) {
  try {
    return work();
  } catch (const RefusedRow& refused) {
    for (const auto& [what, file] : files) {
      const bool is_in = what == refused.what_row() && refused.row() >= 0 && refused.row() < file.rows();
      if (is_in && file.files() > 1) throw RefusedRow(refused, file.place_of(refused.row()));
    }
    throw;
  }
}

}  // namespace kith
