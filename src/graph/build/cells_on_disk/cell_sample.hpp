// The sample from which cells are learned, stored as a step of the work and read back as the vectors used for cells, so
// that k-means under a memory limit can read it like a file.
#pragma once

#include <kith/metric.hpp>
#include <kith/row_reader.hpp>

#include "io/work_folder.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace kith {

// Rows per section of such a step.
inline constexpr int64_t kSampleSection = 64;

class CellSample final : public RowReader {
 public:
  // A sample of `rows` rows. `longest`: the largest squared norm in the collection.
  CellSample(StepFile step, int64_t rows, int64_t cols, DType dtype, Metric metric, double longest);

  const std::string& path() const override { return name_; }
  DType dtype() const override { return DType::f32; }
  int64_t rows() const override { return rows_; }
  int64_t cols() const override;
  void read_rows(int64_t first, int64_t count, void* out) const override;

 private:
  const std::string name_ = "the cells' sample";
  const StepFile step_;
  const int64_t rows_;
  const int64_t stored_cols_;
  const DType stored_dtype_;
  const Metric metric_;
  const double longest_;
};

}  // namespace kith
