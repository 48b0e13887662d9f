#include "kernels/select/select_entries_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "cuda/error.hpp"
#include "kernels/select/device_warp_cuda.hpp"
#include "kernels/select/warp_select.hpp"

#include <string>

namespace kith {
namespace {

constexpr int kWarps = 4;  // of a block, a list each

template <int kQueue>
__global__ void __launch_bounds__(32 * kWarps) select_entries_kernel(EntrySelectTask task) {
  const int64_t list = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (list >= task.lists) return;
  const int lane = lane_index();
  const uint64_t* const entries = task.entries + list * task.stride;
  const int64_t length = task.lengths == nullptr ? task.length : int64_t{task.lengths[list]};
  WarpSelect<DeviceWarp<uint64_t>, kQueue> select(static_cast<int>(task.k));
  int64_t place = lane;
  uint64_t next = place < length ? entries[place] : kPadding;
  // One place in the code where the queues are merged, as the network is long: when one is full, and at the end.
  for (bool more = true; more; select.flush()) {
    bool full = false;
    while (!full && (more = place - lane < length)) {
      const uint64_t entry = next;
      place += 32;
      next = place < length ? entries[place] : kPadding;  // on its way while this one is looked at
      full = select.push(entry);
    }
  }
  KITH_UNROLL
  for (int i = 0; i < kQueue; ++i) {
    if (32 * i + lane < task.k) task.selected[list * task.k + 32 * i + lane] = select.sorted(i);
  }
}

template <int kQueue>
void launch(const EntrySelectTask& task, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(divide_up(task.lists, kWarps));
  select_entries_kernel<kQueue><<<blocks, 32 * kWarps, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("select_entries_kernel");
}

}  // namespace

void launch_select_entries(const EntrySelectTask& task, cudaStream_t stream) {
  if (task.k < 1 || task.k > kSelectEntriesLargestK) {
    throw InvalidArgument("k is " + std::to_string(task.k) + "; entries are selected up to " +
                          std::to_string(kSelectEntriesLargestK));
  }
  if (task.lists == 0) return;
  if (task.k <= 32) return launch<1>(task, stream);
  if (task.k <= 64) return launch<2>(task, stream);
  if (task.k <= 128) return launch<4>(task, stream);
  if (task.k <= 256) return launch<8>(task, stream);
  if (task.k <= 512) return launch<16>(task, stream);
  if (task.k <= 1024) return launch<32>(task, stream);
  launch<64>(task, stream);
}

}  // namespace kith
