// The queries that are searched together on a GPU, and the lists of each.
//
// Memory for each: its values, where they come from the host, and 20 bytes a list.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cuda/device_array.hpp"
#include "ivf/model/gpu_model_cuda.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class QueryBatch {
 public:
  static int64_t bytes_for_each(const MatrixView& queries, int64_t probes) {
    return (queries.space().host_readable() ? queries.cols() * 4 : 0) + probes * 20;
  }

  // Of f32 queries on the host or on the context's device, so many together. On the context's stream, as the resources.
  QueryBatch(const GpuModelCuda& model, const MatrixView& queries, int64_t together, int64_t probes, bool check_finite,
             std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // Brings some of them and ranks their lists.
  void load(int64_t first, int64_t count);

  const float* queries() const { return static_cast<const float*>(now_.data()); }
  int64_t stride() const { return now_.row_stride(); }
  uint64_t* probes() const { return packed_.data(); }  // count x probes, packed

 private:
  const GpuModelCuda& model_;
  const MatrixView all_;
  const int64_t probes_;
  const bool check_finite_;
  const std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const DeviceArray<float> rows_;
  const DeviceArray<int64_t> lists_;
  const DeviceArray<float> distances_;
  const DeviceArray<uint64_t> packed_;
  MatrixView now_;
};

}  // namespace kith
