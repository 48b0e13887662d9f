#include "kernels/rerank/byte_screen_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "kernels/matrix/byte_window.hpp"
#include "kernels/rerank/byte_rounding_cuda.hpp"

#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// One warp per row.
__global__ void __launch_bounds__(kThreads)
    byte_screen_kernel(KeyKind kind, DeviceRowsView rows, int64_t cols, ByteScreenView to) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (row >= rows.count) return;
  const int lane = lane_index();
  const double inverse = kind == KeyKind::cosine ? rows.inverse_norms[row] : 1.0;
  const auto* const data =
      static_cast<const std::byte*>(rows.data) + rows.stored(row) * rows.stride * stored_bytes(rows.dtype);
  double largest = 0;
  for (int64_t col = lane; col < cols; col += 32) {
    const double value = fabs(kept_value(data, rows.dtype, col, to.centre, inverse).value);
    largest = value > largest || value != value ? value : largest;
  }
  largest = warp_largest_double(largest);
  // Cosine is undefined for zero vectors: no bound.
  const bool known = largest < kByteLargest && !(kind == KeyKind::cosine && inverse == 0.0);
  const float scale = known ? byte_scale(largest, kByteCodeMost) : 0.0f;
  Rounding rounding{scale, kByteCodeMost};
  for (int64_t col = lane; col < to.stride; col += 32) {
    int code = 0;
    if (col < cols && known) {
      code = rounding.round(kept_value(data, rows.dtype, col, to.centre, inverse));
    }
    to.codes[row * to.stride + col] = static_cast<int8_t>(code);
  }
  const double lost = warp_sum(rounding.lost);
  const double from = warp_sum(rounding.from);
  const double square = warp_sum(rounding.square);
  if (lane != 0) return;
  to.scales[row] = scale;
  to.squares[row] = static_cast<float>(static_cast<double>(scale) * scale * square);
  to.residuals[row] = known ? byte_residual(sqrt(lost), sqrt(from)) : HUGE_VALF;
}

}  // namespace

void launch_byte_screen(KeyKind kind, const DeviceRowsView& rows, int64_t cols, const ByteScreenView& to,
                        cudaStream_t stream) {
  launch(byte_screen_kernel, Grid::of(divide_up(rows.count, kWarps), kThreads), stream, kind, rows, cols, to);
}

}  // namespace kith
