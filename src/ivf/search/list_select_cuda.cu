#include "ivf/search/list_steps_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/device_core.hpp"
#include "cuda/ptx.hpp"
#include "ivf/scan/stored_key_cuda.hpp"
#include "kernels/select/device_group_cuda.hpp"
#include "kernels/select/key_cut.hpp"

#include <cmath>

namespace kith {
namespace {

constexpr int kParts = 4;   // parts of a thread's values
constexpr int kSlack = 32;  // up to k / kSlack may pass beyond k: the last bisection steps would only separate these

struct AllRows {
  __device__ int count(uint32_t, uint32_t) const { return 0; }
};

struct FirstSlot {
  uint32_t start;
  uint32_t list;
  PairBounds bounds;
  float limit;
};

template <int kThreads, int kHeld>
__global__ void __launch_bounds__(kThreads, (kHeld <= 20 ? 1280 : 1024) / kThreads)
    list_select_kernel(const __grid_constant__ ListSelectTask task) {
  __shared__ typename BlockGroup<kThreads>::Shared shared;
  __shared__ FirstSlot slots[kMostFirstSlots];
  __shared__ float uppers[kMostFirstSlots];
  __shared__ uint32_t found;
  BlockGroup<kThreads> group(shared);
  const int64_t query = blockIdx.x;
  ptx::wait_for_kernel_before();
  if (task.unsure[query] != 0) return;
  const ListKey key_of_lists = task.lists.key();
  const auto thread = static_cast<int>(threadIdx.x);
  const uint32_t* const starts = task.value_starts + query * (kMostFirstSlots + 1);
  const auto count = static_cast<int>(starts[kMostFirstSlots]);
  const float* const values = task.values + query * task.value_stride;
  uint32_t held[kHeld];  // values' bits, or for a while their keys
  KITH_UNROLL
  for (int i = 0; i < kHeld; ++i) {
    float value = NAN;
    if (i * kThreads + thread < count) value = values[i * kThreads + thread];
    held[i] = __float_as_uint(value);
  }
  if (thread < kMostFirstSlots) {
    const uint32_t start = starts[thread];
    const bool used = start < starts[thread + 1];
    const ErrorBounds bounds = used ? task.bounds[query * kMostFirstSlots + thread] : ErrorBounds{0, 0};
    const uint64_t probe = thread < task.slots ? task.probes[query * task.slots + thread] : kPadding;
    slots[thread] = {start, row_of(probe), {1, 0, bounds.error, bounds.moved, 1, 0}, used ? 0.0f : NAN};
  }
  if (thread == 0) found = 0;
  const double unit = query_unit(task.lists, task.prepared, task.queries + query * task.query_stride);
  uint32_t least[kParts];
  int real_parts = 0;
  KITH_UNROLL
  for (int part = 0; part < kParts; ++part) {
    float value = NAN;
    KITH_UNROLL
    for (int i = part; i < kHeld; i += kParts) {
      value = fminf(value, __uint_as_float(held[i]));  // NaN only if both are
    }
    least[part] = ordered_key(value);
    real_parts += least[part] != kNanKey;
  }
  const auto k = static_cast<int>(task.k);
  const KeepRange range{k, k + k / kSlack};
  uint32_t key = kNanKey;
  if (group.sum(real_parts) >= k + k / 2) {  // also a barrier
    key = find_cut(group, least, AllRows(), 0, range).key;
  } else {
    int real = 0;
    KITH_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      held[i] = ordered_key(__uint_as_float(held[i]));
      real += held[i] != kNanKey;
    }
    if (group.sum(real) >= k) key = find_cut(group, held, AllRows(), 0, range).key;
    KITH_UNROLL
    for (int i = 0; i < kHeld; ++i) held[i] = __float_as_uint(key_of_ordered(held[i]));
  }
  double reach = HUGE_VAL;
  if (key != kNanKey) {
    const float kth = key_of_ordered(key);
    if (thread < kMostFirstSlots) {
      const bool used = slots[thread].limit == 0.0f;
      uppers[thread] = used ? upper_bound(key_of_lists, slots[thread].bounds, kth) : -HUGE_VALF;
    }
    __syncthreads();
    float upper = uppers[0];
    for (int slot = 1; slot < kMostFirstSlots; ++slot) upper = fmaxf(upper, uppers[slot]);
    reach = reach_in_range(key_of_lists, upper, unit) ? reach_with_ties(key_of_lists, upper, unit) : HUGE_VAL;
  }
  // Rounded up to f32.
  const double wider = reach + fabs(reach) * 0x1p-22;
  const float reach_out = wider < 1e37 ? static_cast<float>(wider) : HUGE_VALF;
  if (thread == 0) task.reaches[query] = reach_out;
  if (!task.lists_candidates) return;
  if (thread < kMostFirstSlots && slots[thread].limit == 0.0f) {
    slots[thread].limit = value_limit(key_of_lists, slots[thread].bounds, reach_out);
  }
  __syncthreads();
  ListCandidate* const entries = task.candidates.entries + query * task.candidates.capacity;
  uint32_t* const entry_lists = task.candidates.lists + query * task.candidates.capacity;
  float widest = -HUGE_VALF;
  for (int slot = 0; slot < kMostFirstSlots; ++slot) widest = fmaxf(widest, slots[slot].limit);  // NaN is passed over
  uint32_t passing = 0;
  KITH_UNROLL
  for (int i = 0; i < kHeld; ++i) passing |= __uint_as_float(held[i]) <= widest ? 1u << i : 0u;
  for (; passing != 0; passing &= passing - 1) {  // few, so reading them again is cheap
    const auto place = static_cast<uint32_t>((__ffs(static_cast<int>(passing)) - 1) * kThreads + thread);
    const float value = values[place];
    int slot = 0;
    while (slot + 1 < kMostFirstSlots && slots[slot + 1].start <= place) ++slot;
    const FirstSlot& of = slots[slot];
    if (!(value <= of.limit)) continue;
    const auto position = static_cast<uint32_t>(task.lists.offsets[of.list] + (place - of.start));
    if (task.candidates.has_enough_before(position)) continue;
    const uint32_t at = atomicAdd(&found, 1u);
    if (at >= task.candidates.capacity) continue;
    entries[at] = {position, value};
    entry_lists[at] = of.list;
  }
  __syncthreads();
  if (thread == 0) task.candidates.counts[query] = found;
}

template <int kThreads, int kHeld>
void launch_with(const ListSelectTask& task, cudaStream_t stream) {
  launch(list_select_kernel<kThreads, kHeld>, Grid::of(task.query_count, kThreads).chained(), stream, task);
}

}  // namespace

void launch_list_select(const ListSelectTask& task, cudaStream_t stream) {
  if (task.value_stride <= 128 * 16) return launch_with<128, 16>(task, stream);
  if (task.value_stride <= 256 * 20) return launch_with<256, 20>(task, stream);
  if (task.value_stride <= 256 * 32) return launch_with<256, 32>(task, stream);
  if (task.value_stride <= 512 * 32) return launch_with<512, 32>(task, stream);
  static_assert(1024 * 32 == kMostFirstValues);
  launch_with<1024, 32>(task, stream);
}

}  // namespace kith
