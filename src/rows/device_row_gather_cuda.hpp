// Rows of a matrix in a GPU's memory, listed by their numbers, to host memory or to its own: the GPU gathers them, so
// that one copy brings many. Cost: one read of the rows listed.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kith {

// Device memory that gather_cuda may take.
inline constexpr int64_t kGatherBytes = int64_t{8} << 20;

// One after the other; they are there when it returns.
void gather_cuda(const MatrixView& rows, const std::vector<uint32_t>& numbers, std::byte* out,
                 const Resources& resources);

// The same as f32 to memory of that GPU, with 4 bytes a row there beside them.
void gather_floats_cuda(const MatrixView& rows, const std::vector<uint32_t>& numbers, float* out,
                        const Resources& resources);

}  // namespace kith
