// What is found before any pair is compared, as steps of the work folder: the survey of the rows, the centres of their
// cells, the true neighbours of the control rows, and the probes that the recall needs.
//
//   survey, sample  one pass: the fingerprint of the source, checks of values, the longest row; some rows for the centres
//   centres         k-means of the sample, and the order of the cells
//   plan            exact search of the control rows; the probes that the recall needs (probe_forecast.hpp)
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/probe_forecast.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/lists/control_rows.hpp"
#include "io/work_folder.hpp"
#include "rows/rows_info.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kith {

class CellPlanning {
 public:
  struct Plan {
    ControlRows control;
    ProbeForecast forecast;
  };

  // Without a folder where memory is only counted.
  CellPlanning(const VectorFile& x, const CellsParams& params, bool check_finite, WorkFolder* folder,
               const Resources& resources);

  // What each phase takes at least; the centres stay.
  void count();
  // Makes the steps that are not there, once per object. `keep`: the sample too.
  Plan find(bool keep);

  // After that: the longest row, the hashes of the source, the centres of the cells, and their order on the curve.
  double longest() const { return survey_.longest; }
  const std::vector<uint64_t>& hashes() const { return survey_.hashes; }
  MatrixView centres() const { return centres_.view(); }
  const std::vector<uint32_t>& order() const { return order_; }

 private:
  // What the first pass over the source leaves.
  struct Survey {
    double longest = 0;
    std::vector<uint64_t> hashes;
  };

  int64_t sample_count() const { return std::min(x_.rows(), params_.cells * kSampleRowsPerCell); }
  int64_t row_bytes() const { return RowsInfo(x_).row_bytes(); }
  bool find_survey();
  PassBatch pass_batch() const;
  void take_survey();
  void verify_source() const;
  MatrixBuffer learn();
  MatrixBuffer find_centres();
  Neighbors search_control() const;
  ProbeForecast foresee(const ControlRows& control) const;
  Plan find_plan() const;

  const VectorFile& x_;
  const CellsParams params_;
  const bool check_finite_;
  WorkFolder* const folder_;
  const Resources& resources_;
  const Resources quiet_;
  Survey survey_;
  MatrixBuffer centres_;
  std::vector<uint32_t> order_;
};

}  // namespace kith
