#include "ivf/segment/list_labels_cuda.hpp"

#include "core/memory_budget.hpp"
#include "cuda/device_info.hpp"
#include "ivf/segment/residuals_cuda.hpp"

#include <algorithm>

namespace kith {
ListLabels::ListLabels(const IvfModel& model, const GpuModelCuda& there, int64_t most, DType dtype,
                       std::shared_ptr<const DeviceContext> context, const Resources& resources)
    : there_(there), context_(std::move(context)), resources_(resources.with_progress({})) {
  const KeyKind kind = key_kind(model.metric);
  keys_ = DeviceArray<float>(most, "the rows' lists", context_, resources);
  if (kind == KeyKind::cosine) {
    lists_ = DeviceArray<int64_t>(most, "the rows' lists", context_, resources);
    return;
  }
  CentreSearchShape shape;
  shape.rows = most;
  shape.centres = model.lists();
  shape.cols = model.cols();
  shape.dtype = dtype;
  shape.kind = kind;
  const DeviceInfo gpu = usable_gpu(Device::cuda(context_->device()));
  PlanBudget budget;
  budget.host = resources.host_memory()->available();
  budget.device = std::min(gpu.memory_free, resources.device_memory(context_->device())->available()) / 4;  // of the rows left to exact search
  budget.threads = resources.threads();
  const CentreSearchPlan plan = plan_centre_search(shape, gpu, budget);
  memory_ = DeviceBuffer(CentreSearchLayout(shape, plan).bytes, "the search for the rows' lists", context_, resources);
  search_.emplace(shape, plan, there.sample(), memory_.data(), context_, resources_);
  search_->set_centres(there.centres()->data(), model.lists());
}

void ListLabels::find(const MatrixView& rows, int32_t* labels, ProgressMeter& meter) {
  if (!search_) {
    there_.centres()->nearest(rows, 1, false, lists_.data(), keys_.data(), resources_);
    return launch_narrow_lists(lists_.data(), rows.rows(), labels, context_->stream());
  }
  CentreSearchTask task;
  task.rows = {rows.data(), rows.dtype(), rows.row_stride(), rows.rows()};
  task.labels = labels;
  task.keys = keys_.data();
  task.wants_keys = false;
  search_->run(task, meter);
}

}  // namespace kith
