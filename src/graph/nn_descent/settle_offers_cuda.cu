// The keys of offers that wait by their values (waiting_offers_cuda.hpp), once all joins of a round are done. A warp has the
// inbox of a row, four of its threads an offer. Bound by the reads of the rows that are offered.
#include "core/divide.hpp"
#include "cuda/error.hpp"
#include "graph/nn_descent/join_cuda.hpp"
#include "graph/nn_descent/waiting_offers_cuda.hpp"
#include "kernels/select/device_warp_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kWarpOffers = 32 / kRowThreads;

__global__ void __launch_bounds__(kThreads) settle_kernel(const __grid_constant__ JoinTask task) {
  __shared__ uint32_t others[kWarps][32];
  __shared__ int slots[kWarps][32];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + warp;
  if (row >= task.lists.rows) return;
  uint64_t* const inbox = task.inbox + row * task.slots;
  const uint64_t end = task.lists.ends[row];
  const JoinFacts facts = task.operands.facts[row];
  for (int64_t first = 0; first < task.slots; first += 32) {
    const int64_t slot = first + lane_index();
    const uint64_t waiting = slot < task.slots ? inbox[slot] : kPadding;
    bool settles = waits_by_value(waiting);
    if (settles && waiting_bounds(task, facts, waiting).below > ordered_of(end)) {
      inbox[slot] = kPadding;  // it would not enter the list
      settles = false;
    }
    const unsigned open = __ballot_sync(kAllLanes, settles);
    const int count = __popc(open);
    __syncwarp();  // all have read what was there
    if (settles) {
      const int place = __popc(open & ((1u << lane_index()) - 1));
      others[warp][place] = waiting_row(waiting);
      slots[warp][place] = static_cast<int>(slot);
    }
    __syncwarp();
    for (int i = 0; i < count; i += kWarpOffers) {
      const int place = i + lane_index() / kRowThreads;
      const uint32_t other = others[warp][min(place, count - 1)];
      const float key = product_pair_key(task.rows, static_cast<uint32_t>(row), other);
      if (place < count && threadIdx.x % kRowThreads == 0) {
        inbox[slots[warp][place]] = pack_neighbor(ordered_key(key), other);
      }
    }
  }
}

}  // namespace

void launch_settle_offers(const JoinTask& task, cudaStream_t stream) {
  if (task.lists.rows == 0 || task.operands.halves == nullptr || task.all_pairs) return;
  settle_kernel<<<static_cast<unsigned>(divide_up(task.lists.rows, int64_t{kWarps})), kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("settle_kernel");
}

}  // namespace kith
