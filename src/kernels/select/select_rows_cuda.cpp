#include "kernels/select/select_rows_cuda.hpp"

namespace kith {

SelectProblem problem_of(const SelectInput& input, int64_t k, SelectOrder order) {
  return {input.rows, input.cols, k, order, input.ids != nullptr};
}

void launch_select_rows(const SelectInput& input, const SelectOutput& output, const SelectProblem& problem,
                        const SelectPlan& plan, void* workspace, cudaStream_t stream) {
  if (input.rows == 0) return;
  const SelectCall call{
      input, output, plan, problem.k, problem.order == SelectOrder::largest, static_cast<uint64_t*>(workspace)};
  switch (plan.path) {
    case SelectPath::registers: return launch_registers_select(call, stream);
    case SelectPath::filter: return launch_filter_select(call, stream);
    case SelectPath::warp_queue:
      return problem.wide_payload ? launch_warp_queue_wide_select(call, stream) : launch_warp_queue_select(call, stream);
    default: return launch_radix_select(call, stream);
  }
}

}  // namespace kith
