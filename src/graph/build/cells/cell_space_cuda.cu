#include "graph/build/cells/cell_space_cuda.hpp"

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "kernels/distance/canonical.hpp"

#include <utility>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// A thread for each row: the canonical sum, its lanes in registers. The largest as bits, which order what is not
// negative.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    squares_kernel(DeviceRowsView rows, int64_t cols, double* squares, unsigned long long* longest) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= rows.count) return;
  const T* const values = rows.row<T>(row);
  double lanes[kCanonicalLanes] = {};
  for (int64_t first = 0; first < cols; first += kCanonicalLanes) {
    KITH_UNROLL
    for (int j = 0; j < kCanonicalLanes; ++j) {
      const double value = first + j < cols ? static_cast<double>(values[first + j]) : 0.0;
      lanes[j] = fma(value, value, lanes[j]);
    }
  }
  const double sum = canonical_tree(lanes);
  squares[row] = sum;
  atomicMax(longest, static_cast<unsigned long long>(__double_as_longlong(sum)));
}

// What is made of a row.
enum class Made { plain, unit, found, looking };

struct SpaceTask {
  DeviceRowsView rows;
  int64_t cols = 0;
  const uint32_t* list = nullptr;  // null: rows first, first + 1, ...
  int64_t first = 0;
  int64_t count = 0;
  Made made = Made::plain;
  const double* squares = nullptr;
  double longest = 0;
  float* out = nullptr;
};

// A warp for each row.
template <typename T>
__global__ void __launch_bounds__(kThreads) make_kernel(SpaceTask task) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (at >= task.count) return;
  const int64_t row = task.list == nullptr ? task.first + at : task.list[at];
  const bool extra = task.made == Made::found || task.made == Made::looking;
  const int64_t stride = task.cols + (extra ? 1 : 0);
  float* const out = task.out + at * stride;
  const T* const from = task.rows.row<T>(row);
  const double inverse = task.made == Made::unit ? task.rows.inverse_norms[row] : 1.0;
  for (int64_t col = threadIdx.x % 32; col < task.cols; col += 32) {
    const float value = static_cast<float>(from[col]);
    out[col] = task.made == Made::unit ? static_cast<float>(static_cast<double>(value) * inverse) : value;
  }
  if (extra && threadIdx.x % 32 == 0) {
    const double left = task.longest - task.squares[row];
    out[task.cols] = task.made == Made::found ? static_cast<float>(sqrt(left > 0.0 ? left : 0.0)) : 0.0f;
  }
}

}  // namespace

CellSpaceCuda::CellSpaceCuda(const GraphRowsCuda& rows, Metric metric, std::shared_ptr<const DeviceContext> context,
                             const Resources& resources)
    : rows_(rows), metric_(metric), extra_(metric == Metric::inner_product), context_(std::move(context)) {
  if (!extra_) return;
  const int64_t count = rows.view().rows();
  squares_ = DeviceArray<double>(count, "the rows' norms", context_, resources);
  const DeviceArray<unsigned long long> longest(1, "the longest row", context_, resources);
  context_->fill(longest.data(), 0, 1);
  visit_dtype(rows.rows().dtype, [&](auto stored) {
    using T = typename decltype(stored)::type;
    launch(squares_kernel<T>, Grid::over(count, kThreads), context_->stream(), rows.rows(), rows.cols(),
           squares_.data(), longest.data());
  });
  context_->copy(&longest_, longest.data(), sizeof longest_);
  context_->synchronize();
}

MatrixView CellSpaceCuda::make(const uint32_t* list, int64_t first, int64_t count, CellSide side, float* memory) const {
  SpaceTask task{rows_.rows(), rows_.cols(), list, first, count};
  task.made = is_identity()               ? Made::plain
              : !extra_                   ? Made::unit
              : side == CellSide::found   ? Made::found
                                          : Made::looking;
  task.squares = squares_.data();
  task.longest = longest_;
  task.out = memory;
  visit_dtype(rows_.rows().dtype, [&](auto stored) {
    using T = typename decltype(stored)::type;
    launch(make_kernel<T>, Grid::of(divide_up(count, kWarps), kThreads), context_->stream(), task);
  });
  return {task.out, DType::f32, {count, cols(), cols()}, MemorySpace::cuda(context_->device())};
}

MatrixView CellSpaceCuda::range(int64_t first, int64_t count, CellSide side, float* memory) const {
  return is_identity() ? rows_.view().slice(first, count) : make(nullptr, first, count, side, memory);
}

MatrixView CellSpaceCuda::listed(const uint32_t* list, int64_t count, CellSide side, float* memory) const {
  return make(list, 0, count, side, memory);
}

}  // namespace kith
