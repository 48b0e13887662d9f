// Four threads for each code, as they share a canonical sum.
#include "ivf/code_norms_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/error.hpp"
#include "ivf/stored_key_cuda.hpp"
#include "kernels/codes/code_norm.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kTogether = kThreads / kRowThreads;

__global__ void __launch_bounds__(kThreads) code_norms_kernel(CodeNormsTask task, DeviceListsView lists, int64_t bytes) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kTogether + threadIdx.x / kRowThreads;
  if (i >= task.count) return;  // all four threads of a code
  uint8_t* const code = task.codes + i * bytes;
  const float* const centre = task.centres == nullptr ? nullptr : task.centres + task.lists[i] * task.codec.format.cols;
  double lanes[kRowThreadLanes] = {};
  for_stored(lists, AnyReader(lists), code, centre, [&](int, const FourFloats& four) {
    KITH_UNROLL
    for (int lane = 0; lane < kRowThreadLanes; ++lane) {
      const double x = four.values[lane];
      lanes[lane] = fma(x, x, lanes[lane]);
    }
  });
  const unsigned threads = row_threads();
  const double square = join_row_threads(lanes, threads);
  __syncwarp(threads);  // all have read the code
  if (threadIdx.x % kRowThreads != 0) return;
  set_norm_bits(task.codec.format, norm_code(task.codec, static_cast<float>(square)), code);
}

}  // namespace

void launch_code_norms(const CodeNormsTask& task, cudaStream_t stream) {
  if (task.count == 0) return;
  DeviceListsView lists;
  lists.codec = task.codec;
  lists.residual = task.centres != nullptr;
  lists.centres = task.centres;
  code_norms_kernel<<<static_cast<unsigned>(divide_up(task.count, int64_t{kTogether})), kThreads, 0, stream>>>(
      task, lists, task.codec.format.bytes());
  KITH_CUDA_CHECK_LAUNCH("code_norms_kernel");
}

}  // namespace kith
