// A row that a call refuses: one with a NaN, for instance. Callers can rethrow it by another number, or with its file.
#pragma once

#include <kith/error.hpp>
#include <kith/export.hpp>
#include <kith/row_reader.hpp>

#include <cstdint>
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

}  // namespace kith
