#include "kernels/rerank/equal_rows_cuda.hpp"

#include "core/dtype_visit.hpp"
#include "core/memory_budget.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/warp.hpp"
#include "cuda/workspace_layout.hpp"
#include "kernels/matrix/marked_rows_cuda.hpp"
#include "kernels/select/sort_pairs_cuda.hpp"

#include <cub/device/device_scan.cuh>

#include <algorithm>
#include <type_traits>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

struct Larger {
  __device__ uint32_t operator()(uint32_t a, uint32_t b) const { return a < b ? b : a; }
};

int64_t scan_bytes(int64_t rows) {
  size_t bytes = 0;
  const uint32_t* from = nullptr;
  uint32_t* to = nullptr;
  KITH_CUDA_CHECK(cub::DeviceScan::InclusiveScan(nullptr, bytes, from, to, Larger(), rows));
  return static_cast<int64_t>(bytes);
}

struct EqualLayout : WorkspaceLayout {
  explicit EqualLayout(int64_t rows) {
    for (Slot<uint32_t>& one : hashes) one = take<uint32_t>(rows);
    for (Slot<uint32_t>& one : order) one = take<uint32_t>(rows);
    memory = take<std::byte>(std::max(sort_pairs_bytes(rows), scan_bytes(rows)));
  }
  Slot<uint32_t> hashes[2];
  Slot<uint32_t> order[2];
  Slot<std::byte> memory;
};

// An integer of the size of a stored value.
template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>;

// The bits of a row that are compared: as stored, or scaled to length 1 for cosine.
template <typename T, bool kUnit>
class ComparedRow {
 public:
  __device__ ComparedRow(const DeviceRowsView& rows, int64_t row)
      : values_(rows.row<T>(row)), inverse_norm_(kUnit ? rows.inverse_norms[row] : 1.0) {}

  __device__ uint64_t bits(int64_t col) const {
    if constexpr (kUnit) {
      return static_cast<uint64_t>(__double_as_longlong(static_cast<double>(values_[col]) * inverse_norm_));
    } else {
      return values_[col];
    }
  }

 private:
  const T* values_;
  double inverse_norm_;
};

__device__ uint32_t mixed(uint32_t bits) {
  bits ^= bits >> 16;
  bits *= 0x7FEB352Du;
  bits ^= bits >> 15;
  bits *= 0x846CA68Bu;
  return bits ^ bits >> 16;
}

// One warp per row.
template <typename T, bool kUnit>
__global__ void __launch_bounds__(kThreads)
    hash_rows_kernel(DeviceRowsView rows, int64_t cols, uint32_t* hashes, uint32_t* order) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= rows.count) return;
  const ComparedRow<T, kUnit> values(rows, row);
  uint32_t hash = 0;
  for (int64_t col = lane_index(); col < cols; col += 32) {
    const uint64_t bits = values.bits(col);
    uint32_t seed = mixed(static_cast<uint32_t>(col) + 1);
    if constexpr (kUnit) seed = mixed(static_cast<uint32_t>(bits >> 32) ^ seed);
    hash += mixed(static_cast<uint32_t>(bits) ^ seed);
  }
  hash = warp_sum(hash);
  if (lane_index() != 0) return;
  hashes[row] = hash;
  order[row] = static_cast<uint32_t>(row);
}

// One warp per place in hash order: writes the place if it starts a run of equal rows, else 0.
template <typename T, bool kUnit>
__global__ void __launch_bounds__(kThreads) begin_runs_kernel(DeviceRowsView rows, int64_t cols, const uint32_t* hashes,
                                                              const uint32_t* order, uint32_t* starts) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (place >= rows.count) return;
  bool equal = place > 0 && hashes[place] == hashes[place - 1];
  if (equal) {
    const ComparedRow<T, kUnit> mine(rows, order[place]);
    const ComparedRow<T, kUnit> before(rows, order[place - 1]);
    for (int64_t col = lane_index(); equal && col < cols; col += 32) equal = mine.bits(col) == before.bits(col);
    equal = __all_sync(kAllLanes, equal);
  }
  if (lane_index() == 0) starts[place] = equal ? 0u : static_cast<uint32_t>(place);
}

__global__ void __launch_bounds__(kThreads)
    mark_first_kernel(const uint32_t* starts, const uint32_t* order, int64_t rows, int64_t k, uint32_t* marks) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (place < rows && place - starts[place] < k) mark_row(marks, order[place]);
}

}  // namespace

int64_t equal_rows_bytes(int64_t rows) { return EqualLayout(rows).bytes; }

void launch_mark_unequal(const EqualRowsTask& task, cudaStream_t stream) {
  const int64_t rows = task.rows.count;
  if (rows == 0 || is_counted_only(stream)) return;
  const EqualLayout at(rows);
  std::byte* const memory = task.memory;
  const Grid warps = Grid::of(divide_up(rows, kWarps), kThreads);
  SortPairsTask sort;
  for (const int i : {0, 1}) {
    sort.keys[i] = at.hashes[i].in(memory);
    sort.values[i] = at.order[i].in(memory);
  }
  sort.count = rows;
  sort.memory = at.memory.in(memory);
  const bool unit = task.rows.inverse_norms != nullptr;
  visit_dtype(task.rows.dtype, [&]<typename T>(StoredAs<T>) {
    launch(unit ? hash_rows_kernel<T, true> : hash_rows_kernel<BitsOf<T>, false>, warps, stream, task.rows, task.cols,
           sort.keys[0], sort.values[0]);
    const int sorted = launch_sort_pairs(sort, stream);
    // Begins go to the free array of values, their running maximum to the free one of keys.
    uint32_t* const begins = sort.values[1 - sorted];
    uint32_t* const starts = sort.keys[1 - sorted];
    launch(unit ? begin_runs_kernel<T, true> : begin_runs_kernel<BitsOf<T>, false>, warps, stream, task.rows, task.cols,
           sort.keys[sorted], sort.values[sorted], begins);
    auto bytes = static_cast<size_t>(scan_bytes(rows));
    KITH_CUDA_CHECK(cub::DeviceScan::InclusiveScan(sort.memory, bytes, begins, starts, Larger(), rows, stream));
    fill_bytes(task.marks, 0, mark_words(rows) * static_cast<int64_t>(sizeof(uint32_t)), stream);
    launch(mark_first_kernel, Grid::over(rows, kThreads), stream, starts, sort.values[sorted], rows, task.k,
           task.marks);
  });
}

}  // namespace kith
