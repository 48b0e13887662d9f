// Selection for any k: a block for each row runs the cores of select_block_cuda.hpp and sort_block_cuda.hpp on a list
// in global memory. Five reads of the row and a bitonic sort of k entries.
#include "kernels/select/select_rows_cuda.hpp"

#include "cuda/launch.hpp"
#include "kernels/select/cuda_block.hpp"
#include "kernels/select/select_value_cuda.hpp"
#include "kernels/select/sort_block_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 1024;

__global__ void __launch_bounds__(kThreads) radix_kernel(SelectCall call) {
  __shared__ CudaBlock<kThreads>::Shared shared;
  __shared__ uint32_t bound;
  CudaBlock<kThreads> block(shared);
  const int64_t row = blockIdx.x;
  const int64_t length = row_length(call.input, row);
  const int64_t want = call.k < length ? call.k : length;
  uint64_t* const list = call.workspace + row * call.k;
  if (want > 0) {
    const ValueKeys keys{call.input.values + row * call.input.row_stride, call.largest};
    const ValueSelectTask task{list, &bound, keys, length, 0, want, 0};
    BlockSelector<CudaBlock<kThreads>, ValueSelectTask>(block, task).run();
    block.sync();
    sort_block(block, list, want);
    block.sync();
  }
  for (int64_t i = block.thread(); i < call.k; i += kThreads) {
    const uint64_t entry = i < want ? list[i] : EntryOf<uint64_t>::padding();
    write_selected(call.output, row * call.k + i, entry, call.largest);
  }
}

}  // namespace

void launch_radix_select(const SelectCall& call, cudaStream_t stream) {
  launch(radix_kernel, Grid::of(call.input.rows, kThreads), stream, call);
}

}  // namespace kith
