#include "kernels/matrix/range_windows_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "kernels/matrix/candidate_window.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) range_windows_kernel(RangeWindowTask task) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (query >= task.queries) return;
  const BaseFacts base = *task.base_facts;
  const MeasuredWindow measured =
      measured_window({task.kind, task.type == OperandType::bytes, task.cols}, base, task.query_facts[query]);
  const CandidateWindow window = range_window(measured.problem, measured.query, base.rows, task.most);
  const bool sure = window.sure && measured.sure;
  task.thresholds[query] = sure ? window.threshold : -HUGE_VALF;
  task.key_limits[query] = sure ? ordered_key(task.most) : 0;
}

}  // namespace

void launch_range_windows(const RangeWindowTask& task, cudaStream_t stream) {
  launch(range_windows_kernel, Grid::over(task.queries, kThreads), stream, task);
}

}  // namespace kith
