// Rows as the searches for codes take them: moved, rounded to the codebooks' grid where they fit there, numbered for their
// draws, moved and scaled for products. A warp for each row. Cost: what is read and written; where numbers come from
// the values, a dozen dependent operations a column.
#include "quantize/additive/icm_task_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kFullWarp = 0xFFFFFFFFu;

__global__ void __launch_bounds__(kThreads) prepare_rows_kernel(IcmBooks books, IcmGrid grid, IcmRows rows,
                                                                IcmList list) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const int64_t cols = books.cols;
  const int64_t padded = product_cols(cols);
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32; row < rows.count;
       row += static_cast<int64_t>(gridDim.x) * kWarps) {
    float* const values = rows.values + row * cols;
    if (lane == 0) rows.numbers[row] = grid.by_content ? content_number(values, cols) : grid.first_number + row;
    __syncwarp();  // before the values are moved
    bool holds = true;
    for (int64_t c = lane; c < cols; c += 32) {
      holds = holds && fabs(static_cast<double>(values[c]) - books.origin[c]) <= grid.most;
    }
    const bool fits = __all_sync(kFullWarp, holds);
    for (int64_t c = lane; c < cols; c += 32) {
      const double moved = static_cast<double>(values[c]) - books.origin[c];
      values[c] = static_cast<float>(fits ? moved + grid.shift - grid.shift : moved);
    }
    if (rows.centred != nullptr) {
      for (int64_t c = lane; c < padded; c += 32) {
        rows.centred[row * padded + c] = fits && c < cols ? (values[c] - books.centre[c]) * books.scale : 0.0f;
      }
    }
    __syncwarp();
    if (lane == 0) {
      rows.fits[row] = fits ? 1 : 0;
      if (!fits && list.rows != nullptr) list.rows[atomicAdd(list.count, 1u)] = static_cast<uint32_t>(row);
    }
  }
}

}  // namespace

void launch_prepare_icm_rows(const IcmBooks& books, const IcmGrid& grid, const IcmRows& rows, const IcmList& list,
                             cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>(divide_up(rows.count, int64_t{kWarps}), 1 << 16);
  if (list.count != nullptr) KITH_CUDA_CHECK(cudaMemsetAsync(list.count, 0, sizeof(uint32_t), stream));
  launch(prepare_rows_kernel, Grid::of(blocks, kThreads), stream, books, grid, rows, list);
}

}  // namespace kith
