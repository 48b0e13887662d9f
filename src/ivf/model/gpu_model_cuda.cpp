#include "ivf/model/gpu_model_cuda.hpp"

#include "core/typed_row.hpp"
#include "cuda/device_guard.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {
namespace {

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

GpuModelCuda::GpuModelCuda(int device, const IvfModel& model, const Resources& resources)
    : codec_(model.codec->tables(), allocation_context(device), resources) {
  if (!model.has_centres()) return;
  centres_.emplace(device, model.metric, model.centres.view(), resources);
  sample_ = sample_of(model.centres.view());
}

std::shared_ptr<const GpuModelCuda> gpu_model(int device, const IvfModel& model, const Resources& resources) {
  const DeviceGuard guard(device);
  const auto make = [&] { return std::make_shared<const GpuModelCuda>(device, model, resources); };
  return std::static_pointer_cast<const GpuModelCuda>(model.on_gpus->get(Device::cuda(device), make));
}

}  // namespace kith
