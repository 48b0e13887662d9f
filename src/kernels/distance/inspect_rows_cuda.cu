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
    inspect_rows_kernel(const T* rows, int64_t stride, int64_t count, int64_t cols, double* inverse_norms,
                        uint32_t* first_bad) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= count) return;
  const RowFacts facts = inspect_row(rows + row * stride, cols);
  if (!facts.finite && first_bad != nullptr) atomicMin(first_bad, static_cast<uint32_t>(row));
  if (inverse_norms != nullptr) inverse_norms[row] = facts.inverse_norm;
}

}  // namespace

void launch_inspect_rows(const DeviceRowsView& rows, int64_t cols, double* inverse_norms, uint32_t* first_bad,
                         cudaStream_t stream) {
  if (rows.count == 0) return;
  const unsigned blocks = static_cast<unsigned>((rows.count + kThreads - 1) / kThreads);
  visit_dtype(rows.dtype, [&](auto stored) {
    using T = typename decltype(stored)::type;
    inspect_rows_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const T*>(rows.data), rows.stride, rows.count,
                                                         cols, inverse_norms, first_bad);
  });
  KITH_CUDA_CHECK_LAUNCH("inspect_rows_kernel");
}

}  // namespace kith
