// Few queries with rows as they are stored, on the matrix units that every GPU has; launch_stream_product() of any.
#include "kernels/matrix/stream_product_cuda.hpp"

#include <kith/error.hpp>

#include "kernels/matrix/stream_product_kernel_cuda.hpp"

namespace kith {
namespace {

// A chunk of a warp's rows times that of all queries.
struct WarpProducts {
  static constexpr uint32_t kAligned = 128;
  static constexpr bool kFetchesAhead = false;

  __device__ void publish() const {}
  __device__ void multiply(const uint32_t (&a)[kChunkSteps][4], const std::byte* queries, int query_tiles) {
    const int lane = lane_index();
    const int query = lane / 16 * 8 + lane % 8;  // of two tiles of eight
    const int half = lane / 8 % 2;               // of a step's columns
    const uint32_t start = ptx::shared_address(queries);
    KITH_UNROLL
    for (int step = 0; step < kChunkSteps; ++step) {
      const auto unit = static_cast<uint32_t>((2 * step + half) ^ (lane % 8));
      KITH_UNROLL
      for (int pair = 0; pair < kStreamQueryTiles / 2; ++pair) {
        if (2 * pair >= query_tiles) break;
        uint32_t b[4];
        ptx::load_matrices(b, start + static_cast<uint32_t>(16 * pair + query) * kChunkBytes + unit * 16);
        ptx::multiply_add(sums + 8 * pair, a[step], b);
        ptx::multiply_add(sums + 4 * (2 * pair + 1), a[step], b + 2);
      }
    }
  }

  float sums[4 * kStreamQueryTiles] = {};
};

}  // namespace

void launch_stream_product(const StreamProductTask& task, cudaStream_t stream) {
  if (task.base.rows.count == 0 || task.query_count == 0) return;
  if (!can_stream(task.base.rows.dtype)) throw InvalidArgument("rows of bytes are not multiplied as they are stored");
  if (task.engine == ProductEngine::wgmma) return launch_stream_wgmma(task, stream);
  launch_stream_kernel<WarpProducts>(task, 1, stream);
}

}  // namespace kith
