// Gathers and narrows rows of a matrix in a GPU's memory, for code without CUDA. Listed rows are gathered on the GPU,
// so that one copy brings many to the host; narrowed rows become f32, less an offset that is subtracted in f64. Cost:
// one read of the rows, and a write.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace kith {

// Device memory that gather_cuda may take.
inline constexpr int64_t kGatherBytes = int64_t{8} << 20;

// Gathers rows into `out`; complete when it returns.
void gather_cuda(const MatrixView& rows, const std::vector<uint32_t>& numbers, std::byte* out,
                 const Resources& resources);

// The same as f32 to memory of that GPU, with 4 bytes a row there beside them.
void gather_floats_cuda(const MatrixView& rows, const std::vector<uint32_t>& numbers, float* out,
                        const Resources& resources);

// Packed f32 rows, freed in the order of the resources' stream. `offset`: on the host, a value for each column, or
// null. Throws InvalidArgument with the rows' name for a finite value beyond f32's range. Complete when it returns.
std::shared_ptr<const float> narrow_cuda(std::string_view name, const MatrixView& rows, const double* offset,
                                         const Resources& resources);

// Whether rounding would change nothing.
bool is_exact_cuda(const MatrixView& rows, const double* offset, const Resources& resources);

// The error of both devices for such a value.
[[noreturn]] void throw_beyond_float(std::string_view name, double value, int64_t row, int64_t col);

}  // namespace kith
