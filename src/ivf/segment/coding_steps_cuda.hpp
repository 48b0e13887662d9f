// The steps in which rows become a segment on a GPU (code_rows_cuda.hpp).
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

// The list of each row on a GPU: the first by (key of the metric to the centre, list), exactly, as list_assignment.hpp
// has it. By products of all rows with all centres (cluster/search/centre_search_cuda.hpp); for cosine by exact search.
//
// Cost: 2 rows x lists x columns operations on the matrix units. Memory for each row of a call: 2 bytes a column,
// rounded up to 128 bytes, and some 90; the centres laid out for products.
class ListLabels {
 public:
  // For up to `most` rows of a dtype at a time; the model has centres. Works on the context's stream, as the resources
  // do; `model` and `there` must outlive it.
  ListLabels(const IvfModel& model, const GpuModelCuda& there, int64_t most, DType dtype,
             std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // Finds the lists of rows on the device. Labels are there in the order of the stream; one that is no list's number is
  // of a row that is not finite.
  void find(const MatrixView& rows, int32_t* labels, ProgressMeter& meter);
  // Counts what find() takes beside the members, where memory is only counted.
  void count_finding() const;

 private:
  const GpuModelCuda& there_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  DeviceBuffer memory_;  // the search's
  DeviceArray<float> keys_;
  DeviceArray<int64_t> lists_;  // as exact search gives them, with their distances as keys
  std::optional<CentreSearchCuda> search_;
  Footprint finding_;  // what find() takes beside
};

// Rows less the centres of their lists, on a GPU, and list numbers as 32 bits.
struct ResidualTask {
  DeviceRowsView rows;  // of any dtype
  int64_t cols = 0;
  const float* centres = nullptr;  // none: rows are only widened
  const int32_t* lists = nullptr;  // of each row
  int64_t centre_count = 0;        // a list beyond them counts as the first
  float* residuals = nullptr;      // rows x cols
};

// One f32 subtraction a value. Enqueues and returns.
void launch_residuals(const ResidualTask& task, cudaStream_t stream);

// Enqueues and returns.
void launch_narrow_lists(const int64_t* lists, int64_t count, int32_t* narrow, cudaStream_t stream);

// From the list and the code of each row to a segment on the device: a stable sort by list, so that rows ascend within
// each, and one pass that puts codes in that order.
//
// Cost: a radix sort of 8 bytes a row, one read and one write of the codes. Memory: 12 bytes a row beside labels, codes
// and the segment, and what the sort takes.
struct SortListsTask {
  int32_t* labels = nullptr;       // of each row; changed. What is no list's number counts as the first
  const uint8_t* codes = nullptr;  // one after the other
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

// With so many bytes of memory, aligned to 256 bytes. Enqueues and returns.
void launch_sort_lists(const SortListsTask& task, std::byte* memory, cudaStream_t stream);

}  // namespace kith
