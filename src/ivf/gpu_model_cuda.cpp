#include "ivf/gpu_model_cuda.hpp"

#include "cuda/device_guard.hpp"

namespace kith {

GpuModelCuda::GpuModelCuda(int device, const IvfModel& model, const Resources& resources)
    : codec_(model.codec->tables(), allocation_context(device), resources) {
  if (model.has_centres()) centres_.emplace(device, model.metric, model.centres.view(), resources);
}

std::shared_ptr<const GpuModelCuda> gpu_model(int device, const IvfModel& model, const Resources& resources) {
  const DeviceGuard guard(device);
  const auto make = [&] { return std::make_shared<const GpuModelCuda>(device, model, resources); };
  return std::static_pointer_cast<const GpuModelCuda>(model.on_gpus->get(device, make));
}

}  // namespace kith
