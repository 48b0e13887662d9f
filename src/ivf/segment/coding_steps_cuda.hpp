// The steps of encoding rows into a segment on a GPU (code_rows_cuda.hpp).
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cluster/search/centre_search_cuda.hpp"
#include "cuda/device_array.hpp"
#include "ivf/model/gpu_model_cuda.hpp"
#include "ivf/model/ivf_model.hpp"
#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace kith {

// Assigns rows to lists on a GPU: the first by (key of the metric to the centre, list), exactly as list_assignment.hpp.
// Uses products of all rows with all centres (cluster/search/centre_search_cuda.hpp); for cosine an exact search.
//
// Cost: 2 rows x lists x columns operations on the tensor cores. Memory for each row of a call: 2 bytes per column,
// rounded up to 128 bytes, and about 90 more; and the centres laid out for products.
class ListLabels {
 public:
  // For up to `most` rows of a dtype at a time; the model must have centres. Runs on the context's stream, which is
  // that of the resources; `model` and `there` must outlive this object.
  ListLabels(const IvfModel& model, const GpuModelCuda& there, int64_t most, DType dtype,
             std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // Finds the lists of rows on the device. The labels are written in stream order; a label that is no list number marks
  // a row that is not finite.
  void find(const MatrixView& rows, int32_t* labels, ProgressMeter& meter);
  // Counts the memory of find() besides the members, when memory is only counted.
  void count_finding() const;

 private:
  const GpuModelCuda& there_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  DeviceBuffer memory_;  // of the search
  DeviceArray<float> keys_;
  DeviceArray<int64_t> lists_;  // results of exact search, with distances as keys
  std::optional<CentreSearchCuda> search_;
  Footprint finding_;  // memory of find() besides the members
};

// Computes residuals (rows minus the centres of their lists) on a GPU, and narrows list numbers to 32 bits.
struct ResidualTask {
  DeviceRowsView rows;  // of any dtype
  int64_t cols = 0;
  const float* centres = nullptr;  // null: rows are only converted to f32
  const int32_t* lists = nullptr;  // of each row
  int64_t centre_count = 0;        // a list number outside this range counts as 0
  float* residuals = nullptr;      // rows x cols
};

// One f32 subtraction per value. Enqueues and returns.
void launch_residuals(const ResidualTask& task, cudaStream_t stream);

// Enqueues and returns.
void launch_narrow_lists(const int64_t* lists, int64_t count, int32_t* narrow, cudaStream_t stream);

// Builds a segment on the device from the list and the code of each row: a stable sort by list, so that rows ascend
// within each list, and one pass that moves the codes into that order.
//
// Cost: a radix sort of 8 bytes per row, one read and one write of the codes. Memory: 12 bytes per row besides labels,
// codes and the segment, and the temporary memory of the sort.
struct SortListsTask {
  int32_t* labels = nullptr;       // of each row; overwritten. A value that is no list number counts as 0
  const uint8_t* codes = nullptr;  // contiguous
  int64_t count = 0;
  int64_t lists = 1;
  int64_t code_bytes = 0;
  uint32_t first_row = 0;  // the first row's number
  // The segment.
  int64_t* offsets = nullptr;
  uint8_t* sorted_codes = nullptr;
  uint32_t* rows = nullptr;
};

int64_t sort_lists_bytes(int64_t count);

// `memory`: that many bytes, aligned to 256. Enqueues and returns.
void launch_sort_lists(const SortListsTask& task, std::byte* memory, cudaStream_t stream);

}  // namespace kith
