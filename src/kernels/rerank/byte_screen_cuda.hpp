// A copy of rows of floats in bytes on a GPU, which one query is compared with first (screened_nearest_cuda.hpp).
//
// Memory: a byte for each value, columns rounded up to 16, and 12 for each row.
#pragma once

#include "core/divide.hpp"
#include "cuda/workspace_layout.hpp"
#include "kernels/distance/canonical.hpp"
#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

struct ByteScreenView {
  int8_t* codes = nullptr;  // rows x stride; null: there is no copy
  int64_t stride = 0;
  float* scales = nullptr;  // of each row, as in ByteRowBounds
  float* squares = nullptr;
  float* residuals = nullptr;
  float* centre = nullptr;  // cols; null: rows are kept as they are, or of length 1
};

struct ByteScreenLayout : WorkspaceLayout {
  ByteScreenLayout(int64_t rows, int64_t cols, bool centred)
      : stride(round_up(cols, 16)),
        codes(take<int8_t>(rows, stride)),
        scales(take<float>(rows)),
        squares(take<float>(rows)),
        residuals(take<float>(rows)),
        centre(take<float>(centred ? cols : 0)) {}

  ByteScreenView in(std::byte* memory) const {
    return {codes.in(memory),     stride,
            scales.in(memory),    squares.in(memory),
            residuals.in(memory), centre.count > 0 ? centre.in(memory) : nullptr};
  }

  int64_t stride;
  Slot<int8_t> codes;
  Slot<float> scales, squares, residuals, centre;
};

// Fills the copy; the centre must be set. Rows are floats of any kind, with inverse norms for cosine. Enqueues and
// returns.
void launch_byte_screen(KeyKind kind, const DeviceRowsView& rows, int64_t cols, const ByteScreenView& to,
                        cudaStream_t stream);

}  // namespace kith
