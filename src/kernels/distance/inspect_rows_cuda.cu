// A thread for each narrow row; a block for each of few wide ones, where no norm is asked for; else four for each wide
// one, so that its values are read together, each with four lanes of the canonical sum (row_threads_cuda.hpp): both
// give the same bytes. The smallest bad row is an atomic minimum, the same in whatever order the threads come. Bound by
// the read of the rows.
#include "kernels/distance/inspect_rows_cuda.hpp"

#include "core/dtype_visit.hpp"
#include "cuda/launch.hpp"
#include "kernels/distance/inspect_row_cuda.hpp"
#include "kernels/distance/load_four_cuda.hpp"
#include "kernels/distance/row_threads_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kWideCols = 32;
constexpr int64_t kBlockCols = 256;  // few rows of at least this many columns get a block each
constexpr int64_t kBlockRows = 512;

__device__ void report(const RowFindings& findings, int64_t row, const InspectedRow& inspected) {
  const auto number = static_cast<uint32_t>(row);
  if (!inspected.finite && findings.first_bad != nullptr) atomicMin(findings.first_bad, number);
  if (inspected.negative && findings.first_negative != nullptr) atomicMin(findings.first_negative, number);
  if (findings.inverse_norms != nullptr) findings.inverse_norms[row] = inspected.inverse_norm;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    inspect_rows_kernel(DeviceRowsView rows, int64_t cols, RowFindings findings) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= rows.count) return;
  report(findings, row, inspect_row(rows.row<T>(row), cols));
}

template <bool kNorms, typename T>
__global__ void __launch_bounds__(kThreads)
    inspect_wide_rows_kernel(DeviceRowsView rows, int64_t cols, RowFindings findings) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kRowThreads;
  if (row >= rows.count) return;
  const unsigned threads = row_threads();
  const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
  const T* const values = rows.row<T>(row);
  const bool aligned = rows_aligned(static_cast<const T*>(rows.data), rows.stride);
  double lanes[kRowThreadLanes] = {};
  bool finite = true;
  bool negative = false;
#pragma unroll 8
  for (int64_t first = kRowThreadLanes * thread; first < cols; first += kCanonicalLanes) {
    const Four<T> four = load_four(values, first, cols, aligned);
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) {
      const auto value = static_cast<float>(four.values[i]);
      finite = finite && value - value == 0.0f;
      negative = negative || value < 0.0f;
      if constexpr (kNorms) lanes[i] = fma(static_cast<double>(value), static_cast<double>(value), lanes[i]);
    }
  }
  finite = __all_sync(threads, finite);
  negative = __any_sync(threads, negative);
  const double squares = kNorms ? join_row_threads(lanes, threads) : 0.0;
  if (thread == 0) report(findings, row, {finite, negative, canonical_inverse_norm(squares)});
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    inspect_few_rows_kernel(DeviceRowsView rows, int64_t cols, RowFindings findings) {
  const T* const values = rows.row<T>(blockIdx.x);
  bool finite = true;
  bool negative = false;
#pragma unroll 8
  for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
    const auto value = static_cast<float>(values[col]);
    finite = finite && value - value == 0.0f;
    negative = negative || value < 0.0f;
  }
  if (!finite || negative) report(findings, blockIdx.x, {finite, negative, 0.0});
}

}  // namespace

void launch_inspect_rows(const DeviceRowsView& rows, int64_t cols, const RowFindings& findings, cudaStream_t stream) {
  if (findings.inverse_norms == nullptr && cols >= kBlockCols && rows.count <= kBlockRows) {
    return visit_dtype(rows.dtype, [&]<typename T>(StoredAs<T>) {
      launch(inspect_few_rows_kernel<T>, Grid::of(rows.count, kThreads), stream, rows, cols, findings);
    });
  }
  const int64_t threads = rows.count * (cols < kWideCols ? 1 : kRowThreads);
  visit_dtype(rows.dtype, [&]<typename T>(StoredAs<T>) {
    const auto kernel = cols < kWideCols                    ? inspect_rows_kernel<T>
                        : findings.inverse_norms != nullptr ? inspect_wide_rows_kernel<true, T>
                                                            : inspect_wide_rows_kernel<false, T>;
    launch(kernel, Grid::over(threads, kThreads), stream, rows, cols, findings);
  });
}

}  // namespace kith
