// A model's centres and code on a GPU. Memory: the centres, a copy of them laid out for products, the code's values.
#pragma once

#include <kith/memory_space.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cluster/data/data_survey.hpp"
#include "cuda/device_array.hpp"
#include "exact/prepared_base.hpp"
#include "ivf/model/ivf_model.hpp"
#include "quantize/device_codec_cuda.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace kith {

// The centres of inverted lists on a GPU, laid out for exact search: the nearest lists of rows and queries there.
class GpuCentres {
 public:
  // Copies them, and waits.
  GpuCentres(int device, Metric metric, const MatrixView& centres, const Resources& resources);

  const float* data() const { return static_cast<const float*>(view_.data()); }
  const MatrixView& view() const { return view_; }
  const PreparedBase& layout() const { return *layout_; }
  int64_t bytes() const { return memory_.bytes() + layout_->bytes(); }

  // The `count` nearest lists of each row, nearest first, as exact search orders them: rows x count list numbers and as
  // many distances, in the memory of the device that the rows lie on. On the resources' stream.
  void nearest(const MatrixView& rows, int64_t count, bool check_finite, int64_t* lists, float* distances,
               const Resources& resources) const;
  // What the nearest list of so many rows there takes at least.
  Footprint nearest_footprint(int64_t rows, DType dtype, const Resources& resources) const;

 private:
  int device_;
  Metric metric_;
  DeviceArray<float> memory_;
  MatrixView view_;
  std::shared_ptr<PreparedBase> layout_;
};

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
