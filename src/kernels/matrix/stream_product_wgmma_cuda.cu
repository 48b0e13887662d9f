// Few queries with rows as they are stored, on Hopper's matrix units: a warpgroup has its 64 rows in registers, as they
// were rounded, and reads the queries where they are in shared memory. Rows come to the L2 cache some chunks ahead.
#include "cuda/ptx_hopper.hpp"
#include "kernels/matrix/stream_product_cuda.hpp"
#include "kernels/matrix/stream_product_kernel_cuda.hpp"

namespace kith {
namespace {

constexpr int64_t kGroupWarps = 4;

struct WarpgroupProducts {
  static constexpr uint32_t kAligned = 1024;
  static constexpr bool kFetchesAhead = true;

  __device__ void publish() const { ptx::shared_writes_fence(); }
  // All queries, since fewer would be another instruction for each number.
  __device__ void multiply(const uint32_t (&a)[kChunkSteps][4], const std::byte* queries, int) {
    const uint64_t b = ptx::operand_descriptor(queries);
    ptx::keep_sums(sums);
    ptx::warpgroup_fence();
    KITH_UNROLL
    for (int step = 0; step < kChunkSteps; ++step) {
      ptx::multiply_rows(sums, a[step], ptx::descriptor_after(b, step * kStepBytes));
    }
    ptx::warpgroup_commit();
    ptx::warpgroup_wait<0>();
    ptx::keep_sums(sums);
  }

  float sums[4 * kStreamQueryTiles] = {};
};

}  // namespace

void launch_stream_wgmma(const StreamProductTask& task, cudaStream_t stream) {
  launch_stream_kernel<WarpgroupProducts>(task, kGroupWarps, stream);
}

}  // namespace kith
