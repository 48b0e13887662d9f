// Refuses vectors with a NaN or an infinity, or with a negative value if the metric forbids these. The errors are the
// same on every device.
#pragma once

#include <kith/refused_row.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

// `what` is "query" or "base"; `row` counts from the caller's first.
[[noreturn]] void throw_not_finite(std::string_view what, int64_t row);
[[noreturn]] void throw_negative(std::string_view what, int64_t row);

// The caller's number of row i: first + i, or list[first + i]. Rows that `kept` leaves out are not checked.
struct RowNumbers {
  int64_t first = 0;
  const uint32_t* list = nullptr;
  const uint64_t* kept = nullptr;  // bits, of numbers

  int64_t operator[](int64_t i) const { return list == nullptr ? first + i : list[first + i]; }
};

// The first row with a NaN or an infinity, counted from the first here, or -1.
int64_t find_not_finite(const MatrixView& rows, const RowNumbers& numbers, const Resources& resources);
// Pass over all rows and throw InvalidArgument naming the first bad one.
void refuse_not_finite(std::string_view what, const MatrixView& rows, const RowNumbers& numbers,
                       const Resources& resources);
// The same for training rows, which must always be finite.
void refuse_untrainable(const MatrixView& rows, const RowNumbers& numbers, const Resources& resources);
void refuse_negative(std::string_view what, const MatrixView& rows, const RowNumbers& numbers,
                     const Resources& resources);

}  // namespace kith
