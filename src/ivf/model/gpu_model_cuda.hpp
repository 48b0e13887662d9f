// A model's centres and codec on a GPU. Memory: the centres, a copy of them laid out for products, the codec's tables.
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

// The centres of inverted lists on a GPU, laid out for exact search: finds the nearest lists of rows and queries.
class GpuCentres {
 public:
  // Copies the centres and waits for the copy.
  GpuCentres(int device, Metric metric, const MatrixView& centres, const Resources& resources);

  const float* data() const { return static_cast<const float*>(view_.data()); }
  const MatrixView& view() const { return view_; }
  const PreparedBase& layout() const { return *layout_; }
  int64_t bytes() const { return memory_.bytes() + layout_->bytes(); }

  // The `count` nearest lists of each row, nearest first, in the order of exact search: rows x count list numbers and
  // distances, in the memory of the device that holds the rows. Runs on the resources' stream.
  void nearest(const MatrixView& rows, int64_t count, bool check_finite, int64_t* lists, float* distances,
               const Resources& resources) const;
  // The least memory needed to find the nearest list of that many rows.
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
  // Copies the model and waits for the copy.
  GpuModelCuda(int device, const IvfModel& model, const Resources& resources);

  int64_t bytes() const override { return codec_.bytes() + (centres_ ? centres_->bytes() : 0); }
  const GpuCentres* centres() const { return centres_ ? &*centres_ : nullptr; }  // null: one list without a centre
  const DeviceCodec& codec() const { return codec_; }
  // Rows lie near their centres, so the centres determine the origin and scale of products.
  const DataSample& sample() const { return sample_; }

 private:
  DeviceCodec codec_;
  std::optional<GpuCentres> centres_;
  DataSample sample_;
};

// The model's copy on that device; made by the first call.
std::shared_ptr<const GpuModelCuda> gpu_model(int device, const IvfModel& model, const Resources& resources);

}  // namespace kith
