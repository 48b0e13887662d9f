// Rows in a GPU's memory as f32 there, less an offset that is subtracted in f64. Cost: one read and one write.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace kith {

// Packed rows, freed in the order of the resources' stream. `offset` is on the host, a value for each column, or null.
// InvalidArgument with the rows' name for a finite value beyond f32's range. They are there when it returns.
std::shared_ptr<const float> narrow_cuda(std::string_view name, const MatrixView& rows, const double* offset,
                                         const Resources& resources);

// Whether rounding would change nothing.
bool is_exact_cuda(const MatrixView& rows, const double* offset, const Resources& resources);

// What both devices say of such a value.
[[noreturn]] void throw_beyond_float(std::string_view name, double value, int64_t row, int64_t col);

}  // namespace kith
