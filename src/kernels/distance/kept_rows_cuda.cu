// A thread for each row.
#include "kernels/distance/kept_rows_cuda.hpp"

#include "cuda/error.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

__global__ void __launch_bounds__(kThreads)
    keep_norms_kernel(const double* norms, const uint32_t* list, uint32_t first_listed, int64_t count, double* kept) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) kept[i] = norms[list[i] - first_listed];
}

__global__ void __launch_bounds__(kThreads) mask_terms_kernel(MaskTermsTask task) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= task.padded) return;
  const bool kept = i < task.count && is_kept(task.bits, task.first_row + static_cast<uint32_t>(i));
  task.masked[i] = kept ? task.terms[i] : task.none;
}

}  // namespace

void launch_keep_norms(const double* norms, const uint32_t* list, uint32_t first_listed, int64_t count, double* kept,
                       cudaStream_t stream) {
  if (count == 0) return;
  keep_norms_kernel<<<blocks_for(count), kThreads, 0, stream>>>(norms, list, first_listed, count, kept);
  KITH_CUDA_CHECK_LAUNCH("keep_norms_kernel");
}

void launch_mask_terms(const MaskTermsTask& task, cudaStream_t stream) {
  if (task.padded == 0) return;
  mask_terms_kernel<<<blocks_for(task.padded), kThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("mask_terms_kernel");
}

}  // namespace kith
