// A row that a call refuses: one with a NaN, for instance. Callers can rethrow it by another number, or with its file.
#pragma once

#include <kith/error.hpp>
#include <kith/export.hpp>
#include <kith/row_reader.hpp>
#include <kith/vector_file.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace kith {

class KITH_EXPORT RefusedRow : public InvalidArgument {
 public:
  // The message is "`what` row `row` `problem`".
  RefusedRow(std::string_view what, int64_t row, std::string problem);
  // The same for a row whose file is known.
  RefusedRow(const RefusedRow& refused, const RowPlace& place);

  const std::string& what_row() const { return what_row_; }
  int64_t row() const { return row_; }
  [[noreturn]] void throw_as(std::string_view what, int64_t row) const { throw RefusedRow(what, row, problem_); }

 private:
  std::string what_row_;  // "query", "base", ...
  int64_t row_;
  std::string problem_;
};

// Does the work; its errors about rows name them `what` and count from `first`.
template <typename Work>
decltype(auto) naming_rows(std::string_view what, const Work& work, int64_t first = 0) {
  try {
    return work();
  } catch (const RefusedRow& refused) {
    refused.throw_as(what, first + refused.row());
  }
}

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
