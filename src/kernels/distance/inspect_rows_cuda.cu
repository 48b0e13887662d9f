// A thread for each row; the smallest bad row is an atomic minimum, the same in whatever order the threads come.
#include "kernels/distance/inspect_rows_cuda.hpp"

#include "core/dtype_visit.hpp"
#include "cuda/error.hpp"
#include "kernels/distance/inspect_row_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 128;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    inspect_rows_kernel(DeviceRowsView rows, int64_t cols, RowFindings findings) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= rows.count) return;
  const RowFacts facts = inspect_row(static_cast<const T*>(rows.data) + rows.stored(row) * rows.stride, cols);
  const auto number = static_cast<uint32_t>(row);
  if (!facts.finite && findings.first_bad != nullptr) atomicMin(findings.first_bad, number);
  if (facts.negative && findings.first_negative != nullptr) atomicMin(findings.first_negative, number);
  if (findings.inverse_norms != nullptr) findings.inverse_norms[row] = facts.inverse_norm;
}

}  // namespace

void launch_inspect_rows(const DeviceRowsView& rows, int64_t cols, const RowFindings& findings, cudaStream_t stream) {
  if (rows.count == 0) return;
  const unsigned blocks = static_cast<unsigned>((rows.count + kThreads - 1) / kThreads);
  visit_dtype(rows.dtype, [&](auto stored) {
    using T = typename decltype(stored)::type;
    inspect_rows_kernel<T><<<blocks, kThreads, 0, stream>>>(rows, cols, findings);
  });
  KITH_CUDA_CHECK_LAUNCH("inspect_rows_kernel");
}

}  // namespace kith
