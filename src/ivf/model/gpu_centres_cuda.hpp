// The centres of inverted lists on a GPU, laid out for exact search: the nearest lists of rows and queries there.
#pragma once

#include <kith/memory_space.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cuda/device_array.hpp"
#include "exact/prepared_base.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class GpuCentres {
 public:
  // Copies them, and waits.
  GpuCentres(int device, Metric metric, const MatrixView& centres, const Resources& resources);

  const float* data() const { return static_cast<const float*>(view_.data()); }
  int64_t bytes() const { return memory_.bytes() + layout_->bytes(); }

  // The `count` nearest lists of each row, nearest first, as exact search orders them: rows x count list numbers and as
  // many distances, in the memory of the device that the rows lie on. On the resources' stream.
  void nearest(const MatrixView& rows, int64_t count, bool check_finite, int64_t* lists, float* distances,
               const Resources& resources) const;

 private:
  int device_;
  Metric metric_;
  DeviceArray<float> memory_;
  MatrixView view_;
  std::shared_ptr<PreparedBase> layout_;
};

}  // namespace kith
