// A model's centres and code on a GPU. Memory: the centres, a copy of them laid out for products, the code's values.
#pragma once

#include "cluster/data/data_survey.hpp"
#include "ivf/model/gpu_centres_cuda.hpp"
#include "ivf/model/gpu_model.hpp"
#include "ivf/model/ivf_model.hpp"
#include "quantize/device_codec_cuda.hpp"

#include <memory>
#include <optional>

namespace kith {

class GpuModelCuda final : public GpuModel {
 public:
  // Copies, and waits.
  GpuModelCuda(int device, const IvfModel& model, const Resources& resources);

  int64_t bytes() const override { return codec_.bytes() + (centres_ ? centres_->bytes() : 0); }
  const GpuCentres* centres() const { return centres_ ? &*centres_ : nullptr; }  // null: one list without a centre
  const DeviceCodec& codec() const { return codec_; }
  // Rows are where their centres are: in which origin and scale products with the centres are made.
  const DataSample& sample() const { return sample_; }

 private:
  DeviceCodec codec_;
  std::optional<GpuCentres> centres_;
  DataSample sample_;
};

// The one that the model keeps for that device, made by the first call.
std::shared_ptr<const GpuModelCuda> gpu_model(int device, const IvfModel& model, const Resources& resources);

}  // namespace kith
