// Selection in short rows: a warp reads a row into registers, finds the cut by bisection, collects what it keeps in
// shared memory and sorts that with the odd-size network. One read of the row, about 12 rounds of 32 comparisons for
// random values, a sort of k rounded up to a power of two; the order of the values makes no difference to the time.
#include "kernels/select/select_paths_cuda.hpp"

#include "cuda/error.hpp"
#include "kernels/select/device_group_cuda.hpp"
#include "kernels/select/key_cut.hpp"
#include "kernels/select/lane_array.hpp"
#include "kernels/select/select_value_cuda.hpp"

namespace kith {
namespace {

template <int kSort>
constexpr int kWarpsPerBlock = kSort >= 16 ? 4 : 8;

__device__ int lanes_before(int count) {
  int total = count;
  KITH_UNROLL
  for (int apart = 1; apart < 32; apart *= 2) {
    const int before = __shfl_up_sync(kAllLanes, total, apart);
    if (lane_index() >= apart) total += before;
  }
  return total - count;
}

template <int kItems, int kSort>
__global__ void __launch_bounds__(32 * kWarpsPerBlock<kSort>, 3) registers_kernel(SelectCall call) {
  __shared__ uint64_t kept[kWarpsPerBlock<kSort>][32 * kSort];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = lane_index();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock<kSort> + warp;
  if (row >= call.input.rows) return;
  const float* const values = call.input.values + row * call.input.row_stride + lane;
  const int length = static_cast<int>(row_length(call.input, row));
  const int k = static_cast<int>(call.k);
  const int want = k < length ? k : length;

  uint32_t keys[kItems];
  KITH_UNROLL
  for (int i = 0; i < kItems; ++i) {
    keys[i] = 32 * i + lane < length ? select_key(values[32 * i], call.largest) : kNanKey;
  }
  // Also of places past the end: a cut's row is never one of theirs.
  const auto row_at = [&](int i) { return static_cast<uint32_t>(32 * i + lane); };
  WarpGroup group;
  KeyCut cut{0, 0};  // keeps nothing, as no place of an empty row has a key below kNanKey
  if (length > 0) {
    const uint32_t last = static_cast<uint32_t>(length) - 1;
    cut = want < length ? find_cut(group, keys, row_at, last, {want, want}) : KeyCut{kNanKey, last};
    cut.row = cut.row < last ? cut.row : last;
  }
  int count = 0;
  KITH_UNROLL
  for (int i = 0; i < kItems; ++i) count += cut.keeps(keys[i], row_at(i));
  int place = lanes_before(count);
  KITH_UNROLL
  for (int i = 0; i < kItems; ++i) {
    if (cut.keeps(keys[i], row_at(i))) kept[warp][place++] = pack_neighbor(keys[i], row_at(i));
  }
  __syncwarp();

  uint64_t entries[kSort];
  KITH_UNROLL
  for (int i = 0; i < kSort; ++i) entries[i] = 32 * i + lane < want ? kept[warp][32 * i + lane] : kPadding;
  run_schedule<DeviceWarp<uint64_t>, SortSchedule<kSort>>(entries);
  KITH_UNROLL
  for (int i = 0; i < kSort; ++i) {
    if (32 * i + lane < k) write_selected(call.output, row * k + 32 * i + lane, entries[i], call.largest);
  }
}

template <int kItems, int kSort>
void launch(const SelectCall& call, cudaStream_t stream) {
  constexpr int kWarps = kWarpsPerBlock<kSort>;
  const int64_t blocks = (call.input.rows + kWarps - 1) / kWarps;
  registers_kernel<kItems, kSort><<<static_cast<unsigned>(blocks), 32 * kWarps, 0, stream>>>(call);
  KITH_CUDA_CHECK_LAUNCH("registers_kernel");
}

template <int kItems>
void launch_for_k(const SelectCall& call, cudaStream_t stream) {
  if (call.k <= 32) return launch<kItems, 1>(call, stream);
  if (call.k <= 64) return launch<kItems, 2>(call, stream);
  if (call.k <= 128) return launch<kItems, 4>(call, stream);
  if (call.k <= 256) return launch<kItems, 8>(call, stream);
  if (call.k <= 512) return launch<32, 16>(call, stream);
  return launch<32, 32>(call, stream);
}

}  // namespace

void launch_registers_select(const SelectCall& call, cudaStream_t stream) {
  if (call.input.cols <= 256) return launch_for_k<8>(call, stream);
  return launch_for_k<32>(call, stream);
}

}  // namespace kith
