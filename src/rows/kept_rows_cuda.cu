// A thread for each row, or for each word of bits.
#include "rows/kept_rows_cuda.hpp"

#include "cuda/launch.hpp"
#include "cuda/warp.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

constexpr int kRankWords = kKeptRankRows / 64;

// A block for the words of a rank.
__global__ void __launch_bounds__(kRankWords) kept_numbers_kernel(KeptNumbersTask task) {
  __shared__ uint32_t first_warp;  // kept rows of its words
  const int64_t rank = task.first_rank + blockIdx.x;
  const int64_t word = rank * kRankWords + threadIdx.x;
  uint64_t rest = word < task.words ? task.bits[word] : 0;
  const auto mine = static_cast<uint32_t>(__popcll(rest));
  uint32_t before = warp_inclusive(mine);  // of this warp, this word included
  if (threadIdx.x == 31) first_warp = before;
  __syncthreads();
  if (threadIdx.x >= 32) before += first_warp;
  // Places before first_place wrap around and are too large, too.
  uint32_t place = task.ranks[rank] + before - mine - task.first_place;
  for (; rest != 0; rest &= rest - 1, ++place) {
    if (place < task.count)
      task.numbers[place] = static_cast<uint32_t>(word * 64 + __ffsll(static_cast<long long>(rest)) - 1);
  }
}

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

void launch_kept_numbers(const KeptNumbersTask& task, cudaStream_t stream) {
  if (task.count == 0) return;
  static_assert(kRankWords == 64);
  launch(kept_numbers_kernel, Grid::of(task.end_rank - task.first_rank, kRankWords), stream, task);
}

void launch_keep_norms(const double* norms, const uint32_t* list, uint32_t first_listed, int64_t count, double* kept,
                       cudaStream_t stream) {
  launch(keep_norms_kernel, Grid::over(count, kThreads), stream, norms, list, first_listed, count, kept);
}

void launch_mask_terms(const MaskTermsTask& task, cudaStream_t stream) {
  launch(mask_terms_kernel, Grid::over(task.padded, kThreads), stream, task);
}

}  // namespace kith
