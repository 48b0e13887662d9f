#include "ivf/model/gpu_model_cuda.hpp"

#include "core/typed_row.hpp"
#include "cuda/device_guard.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {

namespace {

// The layout of a single matrix on a single device.
class OneLayout final : public BaseLayouts {
 public:
  explicit OneLayout(const PreparedBase* layout) : layout_(layout) {}
  bool can_prepare() const override { return true; }
  bool prepare(const SearchTask&, Device, const Resources&) override { return true; }
  const PreparedBase* of(int64_t) const override { return layout_; }

 private:
  const PreparedBase* layout_;
};

DataSample sample_of(const MatrixView& centres) {
  DataSample sample;
  const int64_t cols = centres.cols();
  std::vector<double> sums(static_cast<size_t>(cols), 0.0);
  for (int64_t i = 0; i < centres.rows(); ++i) {
    const float* const row = typed_row<float>(centres, i);
    for (int64_t c = 0; c < cols; ++c) sums[static_cast<size_t>(c)] += row[c];
  }
  for (const double sum : sums) {
    const auto mean = static_cast<float>(sum / static_cast<double>(centres.rows()));
    sample.origin.push_back(std::isfinite(mean) ? mean : 0.0f);
  }
  for (int64_t i = 0; i < centres.rows(); ++i) {
    const float* const row = typed_row<float>(centres, i);
    for (int64_t c = 0; c < cols; ++c) {
      const float apart = std::fabs(row[c] - sample.origin[static_cast<size_t>(c)]);
      if (std::isfinite(apart)) sample.largest = std::max(sample.largest, apart);
    }
  }
  return sample;
}

}  // namespace

GpuCentres::GpuCentres(int device, Metric metric, const MatrixView& centres, const Resources& resources)
    : device_(device), metric_(metric) {
  const DeviceGuard guard(device);
  const std::shared_ptr<const DeviceContext> context = allocation_context(device, resources);
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

Footprint GpuCentres::nearest_footprint(int64_t rows, DType dtype, const Resources& resources) const {
  SearchShape shape = check_knn({rows, view_.cols(), dtype, view_.space()}, RowsInfo(view_), {1, metric_});
  shape.base_checked = true;
  const SearchRequest request{.k = 1, .check_finite = false, .result_space = view_.space()};
  return search_footprint(shape, request, RowFilter(), resources);
}

GpuModelCuda::GpuModelCuda(int device, const IvfModel& model, const Resources& resources)
    : codec_(model.codec->tables(), allocation_context(device, resources), resources) {
  if (!model.has_centres()) return;
  centres_.emplace(device, model.metric, model.centres.view(), resources);
  sample_ = sample_of(model.centres.view());
}

std::shared_ptr<const GpuModelCuda> gpu_model(int device, const IvfModel& model, const Resources& resources) {
  const DeviceGuard guard(device);
  const auto make = [&] { return std::make_shared<const GpuModelCuda>(device, model, resources); };
  return std::static_pointer_cast<const GpuModelCuda>(model.on_gpus->get(Device::cuda(device), resources, make));
}

}  // namespace kith
