// The list of each row on a GPU: the first by (key of the metric to the centre, list), exactly, as list_assignment.hpp
// has it. By products of all rows with all centres (cluster/centre_search_cuda.hpp); for cosine by exact search.
//
// Cost: 2 rows x lists x columns operations on the matrix units. Memory for each row of a call: 2 bytes a column,
// rounded up to 128 bytes, and some 90; the centres laid out for products.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cluster/search/centre_search_cuda.hpp"
#include "cuda/device_array.hpp"
#include "ivf/model/gpu_model_cuda.hpp"
#include "ivf/model/ivf_model.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace kith {

class ListLabels {
 public:
  // For up to `most` rows of a dtype at a time; the model has centres. Works on the context's stream, as the resources
  // do; `model` and `there` must outlive it.
  ListLabels(const IvfModel& model, const GpuModelCuda& there, int64_t most, DType dtype,
             std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // Of rows on the device. Labels are there in the order of the stream; one that is no list's number is of a row that
  // is not finite.
  void find(const MatrixView& rows, int32_t* labels, ProgressMeter& meter);

 private:
  const GpuModelCuda& there_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  DeviceBuffer memory_;  // the search's
  DeviceArray<float> keys_;
  DeviceArray<int64_t> lists_;  // as exact search gives them, with their distances as keys
  std::optional<CentreSearchCuda> search_;
};

}  // namespace kith
