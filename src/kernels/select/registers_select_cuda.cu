// Selection in short rows: a warp reads a row into registers, finds the cut by bisection, collects what it keeps in
// shared memory and sorts that with the odd-size network. One read of the row, about 12 rounds of 32 comparisons for
// random values, a sort of k rounded up to a power of two; the order of the values makes no difference to the time.
#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "kernels/select/device_group_cuda.hpp"
#include "kernels/select/key_cut.hpp"
#include "kernels/select/lane_array.hpp"
#include "kernels/select/select_rows_cuda.hpp"
#include "kernels/select/select_value_cuda.hpp"

namespace kith {
namespace {

constexpr int kWarps = 4;

__device__ int lanes_before(int count) {
  int total = count;
  KITH_UNROLL
  for (int apart = 1; apart < 32; apart *= 2) {
    const int before = __shfl_up_sync(kAllLanes, total, apart);
    if (lane_index() >= apart) total += before;
  }
  return total - count;
}

// Place i of a lane has row 32 i + lane.
struct LaneRows {
  int lane;

  __device__ int count(uint32_t places, uint32_t row) const {
    const int places_before = (static_cast<int>(row) - lane + 32) / 32;  // 0 where the row is before the lane's first
    return __popc(places_before >= 32 ? places : places & ((1u << places_before) - 1));
  }
};

// Returns the number of entries collected.
template <int kItems, typename Keeps>
__device__ int collect(const uint32_t (&keys)[kItems], uint64_t* kept, const Keeps& keeps) {
  int count = 0;
  KITH_UNROLL
  for (int i = 0; i < kItems; ++i) count += keeps(i);
  int place = lanes_before(count);
  KITH_UNROLL
  for (int i = 0; i < kItems; ++i) {
    if (keeps(i)) kept[place++] = pack_neighbor(keys[i], static_cast<uint32_t>(32 * i + lane_index()));
  }
  return __shfl_sync(kAllLanes, place, 31);
}

template <int kItems, int kSort>
__global__ void __launch_bounds__(32 * kWarps, kSort < 16 ? 8 : 3) registers_kernel(SelectCall call) {
  __shared__ uint64_t kept[kWarps][32 * kSort];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = lane_index();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + warp;
  if (row >= call.input.rows) return;
  const float* const values = call.input.values + row * call.input.row_stride + lane;
  const int length = static_cast<int>(row_length(call.input, row));
  const int k = static_cast<int>(call.k);
  const int want = k < length ? k : length;

  uint32_t keys[kItems];
  int kept_count = 0;
  if (length > 0) {
    // Issues all loads first, without branches, so that they overlap.
    const float nan = __int_as_float(0x7FC00000);
    float loaded[kItems];
    KITH_UNROLL
    for (int i = 0; i < kItems; ++i) loaded[i] = 32 * i < length - lane ? values[32 * i] : nan;
    KITH_UNROLL
    for (int i = 0; i < kItems; ++i) keys[i] = select_key(loaded[i], call.largest);
    const uint32_t last = static_cast<uint32_t>(length) - 1;
    KeyCut cut{kNanKey, last};
    WarpGroup group;
    // The cut may keep as many entries as the sort takes.
    if (length > 32 * kSort) cut = find_cut(group, keys, LaneRows{lane}, last, {want, 32 * kSort});
    if (cut.key != kNanKey && cut.row >= last) {
      kept_count = collect(keys, kept[warp], [&](int i) { return keys[i] <= cut.key; });
    } else {
      const int room = static_cast<int>(min(cut.row, last)) - lane;  // places past the end come after the last row
      kept_count =
          collect(keys, kept[warp], [&](int i) { return keys[i] < cut.key || (keys[i] == cut.key && 32 * i <= room); });
    }
  }
  __syncwarp();

  uint64_t entries[kSort];
  KITH_UNROLL
  for (int i = 0; i < kSort; ++i) entries[i] = 32 * i + lane < kept_count ? kept[warp][32 * i + lane] : kPadding;
  run_schedule<DeviceWarp<uint64_t>, SortSchedule<kSort>>(entries);
  KITH_UNROLL
  for (int i = 0; i < kSort; ++i) {
    if (32 * i + lane < k) write_selected(call.output, row * k + 32 * i + lane, entries[i], call.largest);
  }
}

template <int kItems, int kSort>
void launch_registers(const SelectCall& call, cudaStream_t stream) {
  launch(registers_kernel<kItems, kSort>, Grid::of(divide_up(call.input.rows, kWarps), 32 * kWarps), stream, call);
}

template <int kItems>
void launch_for_k(const SelectCall& call, cudaStream_t stream) {
  if (call.k <= 32) return launch_registers<kItems, 1>(call, stream);
  if (call.k <= 64) return launch_registers<kItems, 2>(call, stream);
  if (call.k <= 128) return launch_registers<kItems, 4>(call, stream);
  if (call.k <= 256) return launch_registers<kItems, 8>(call, stream);
  if (call.k <= 512) return launch_registers<32, 16>(call, stream);
  return launch_registers<32, 32>(call, stream);
}

}  // namespace

void launch_registers_select(const SelectCall& call, cudaStream_t stream) {
  if (call.input.cols <= 256) return launch_for_k<8>(call, stream);
  return launch_for_k<32>(call, stream);
}

}  // namespace kith
