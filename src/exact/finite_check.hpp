// Vectors that a search refuses: with a NaN or an infinity, or with a value below zero where the metric wants none.
// What is said of them is the same on every device.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

// `what` is "query" or "base"; `row` counts from the caller's first.
[[noreturn]] void throw_not_finite(std::string_view what, int64_t row);

// Pass over all rows and throw InvalidArgument naming the first bad one, counted from first_row.
void refuse_not_finite(std::string_view what, const MatrixView& rows, int64_t first_row, const Resources& resources);
void refuse_negative(std::string_view what, const MatrixView& rows, int64_t first_row, const Resources& resources);

}  // namespace kith
