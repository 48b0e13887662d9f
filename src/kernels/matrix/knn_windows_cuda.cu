#include "kernels/matrix/knn_windows_cuda.hpp"

#include "cuda/launch.hpp"
#include "kernels/matrix/knn_window_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) knn_windows_kernel(KnnWindowTask task) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (query >= task.queries) return;
  const float* const minima = task.minima + query * task.selected;
  const double kth = task.kth != nullptr ? task.kth[query] : task.k <= task.selected ? minima[task.k - 1] : HUGE_VAL;
  const CandidateWindow window = write_knn_window(task, query, kth);
  if (task.group_counts == nullptr) return;
  int count = 0;
  while (count < task.selected && minima[count] <= window.threshold) ++count;
  const bool all_there = count < task.selected || task.selected == task.groups;
  task.group_counts[query] = window.sure && all_there ? count : -1;
}

}  // namespace

void launch_knn_windows(const KnnWindowTask& task, cudaStream_t stream) {
  launch(knn_windows_kernel, Grid::over(task.queries, kThreads), stream, task);
}

}  // namespace kith
