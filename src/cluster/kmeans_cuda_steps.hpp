// What k-means asks a GPU for outside of its loop, for rows that lie in its memory. Each waits until it is done.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kith {

// Device memory that gather_cuda may take.
inline constexpr int64_t kGatherBytes = int64_t{8} << 20;

// The rows listed, one after the other, to host memory.
void gather_cuda(const MatrixView& rows, const std::vector<uint32_t>& numbers, std::byte* out,
                 const Resources& resources);

// As DataSurvey::add for rows in device memory: adds to `sums`, the columns' sums and then their squares', and returns
// the first row, counted from `rows`, with a NaN or an infinity, or -1.
int64_t survey_cuda(const MatrixView& rows, const std::vector<float>& origin, bool check_finite,
                    std::vector<double>& sums, const Resources& resources);

// The distance of each row, anywhere, to every centre: rows x centres f32 in host memory or that of the device.
void transform_cuda(int device, bool spherical, const MatrixView& rows, const MatrixView& centres,
                    const MutableMatrixView& out, const Resources& resources);

// The first row, counted from `rows`, in device memory, with a NaN or an infinity, or -1.
int64_t first_not_finite_cuda(const MatrixView& rows, const Resources& resources);

}  // namespace kith
