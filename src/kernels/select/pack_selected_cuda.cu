#include "kernels/select/pack_selected_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/error.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) pack_selected_kernel(PackSelectedTask task) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= task.count) return;
  const int32_t column = task.columns[i];
  if (column < 0) {
    task.neighbors[i] = kPadding;
    return;
  }
  const uint32_t row = task.numbers == nullptr ? static_cast<uint32_t>(task.first_row + column) : task.numbers[column];
  task.neighbors[i] = pack_neighbor(ordered_key(task.keys[i]), row);
}

}  // namespace

void launch_pack_selected(const PackSelectedTask& task, cudaStream_t stream) {
  if (task.count == 0) return;
  pack_selected_kernel<<<static_cast<unsigned>(divide_up(task.count, kThreads)), kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("pack_selected_kernel");
}

}  // namespace kith
