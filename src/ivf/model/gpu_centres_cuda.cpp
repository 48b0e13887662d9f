#include "ivf/model/gpu_centres_cuda.hpp"

#include "cuda/device_guard.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/knn_loop.hpp"

namespace kith {
namespace {

// The layout of one matrix on one device.
class OneLayout final : public BaseLayouts {
 public:
  explicit OneLayout(const PreparedBase* layout) : layout_(layout) {}
  bool can_prepare() const override { return true; }
  bool prepare(const SearchTask&, Device, const Resources&) override { return true; }
  const PreparedBase* of(int64_t) const override { return layout_; }

 private:
  const PreparedBase* layout_;
};

}  // namespace

GpuCentres::GpuCentres(int device, Metric metric, const MatrixView& centres, const Resources& resources)
    : device_(device), metric_(metric) {
  const DeviceGuard guard(device);
  const std::shared_ptr<const DeviceContext> context = allocation_context(device);
  memory_ = DeviceArray<float>(centres.rows() * centres.cols(), "the centres on the device", context, resources);
  context->copy_values(memory_.data(), static_cast<const float*>(centres.data()), memory_.size());
  context->synchronize();
  view_ = {memory_.data(), DType::f32, {centres.rows(), centres.cols(), centres.cols()}, MemorySpace::cuda(device)};
  layout_ =
      prepare_base_cuda(device, view_, {metric, DType::f32, false, 0}, resources.with_device(Device::cuda(device)));
}

void GpuCentres::nearest(const MatrixView& rows, int64_t count, bool check_finite, int64_t* lists, float* distances,
                         const Resources& resources) const {
  const NeighborsView out{lists, distances, rows.rows(), count, MemorySpace::cuda(device_)};
  ViewSource queries(rows);
  ViewSource base(view_);
  OneLayout layouts(layout_.get());
  SearchShape shape = check_knn(RowsInfo(rows), base.info(), {count, metric_});
  shape.base_checked = true;
  search_knn(shape, {.k = count, .check_finite = check_finite, .result_space = out.space},
             {queries, base, RowFilter(), &layouts}, out, resources);
}

}  // namespace kith
