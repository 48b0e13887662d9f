// Statistics of the data before k-means begins. A sample gives the origin and scale of products; a pass over all rows
// checks that values are finite and gives the columns' variances, to which the tolerance is relative. For spherical
// k-means these are of the rows scaled to length 1.
//
// Sums are made in blocks of kSumBlock rows, in row order, and the blocks' sums are added in order: the same bytes
// however the rows are cut into pieces. Cost: one read of the data.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace kith {

class RowSource;

// Estimates from a few evenly spread rows, from which operands of products are made: a vector near the mean, which is
// subtracted from all rows, and the largest remaining value, for the scale of halves. Any choice is correct.
struct DataSample {
  std::vector<float> origin;  // one value a column
  float largest = 0;          // magnitude of a value minus its column's origin
};

// A sample of up to 256 rows in any memory.
DataSample sample_data(RowSource& rows, int64_t cols, const Resources& resources);
// The last row of that sample, of `rows` rows.
int64_t last_sampled_row(int64_t rows);

// The largest |a[c] - b[c]|; not finite where one is not.
float farthest_apart(const float* a, const float* b, int64_t count);

class DataSurvey {
 public:
  // Surveys rows moved by `origin`, so that a mean far larger than the spread costs no digits; or directions, which are
  // not moved.
  DataSurvey(const std::vector<float>& origin, bool directions, int64_t piece_rows, const Resources& resources);

  // Adds the next rows, from row `first` on. With `check_finite`, throws InvalidArgument for a NaN or an infinity.
  void add(const MatrixView& rows, int64_t first, bool check_finite, ProgressMeter& meter, const Resources& resources);

  // The mean of the columns' variances.
  double variance() const;

  // For one rank's part of the rows, in host memory: add() keeps the sums of each block, 16 bytes a column and block,
  // until fold() adds them to the sums of the rows before, which are passed on to the next rank.
  void keep_blocks() { keeps_ = true; }
  void fold(std::vector<double>& sums, int64_t& rows);
  void set_total(std::vector<double> sums, int64_t rows) {
    sums_ = std::move(sums);
    rows_ = rows;
  }

 private:
  void add_block(const double* block, std::vector<double>& sums) const;

  const std::vector<float> origin_;
  const bool directions_;
  int64_t rows_ = 0;
  std::vector<double> sums_;  // of values, then of their squares
  HostArray<double> blocks_;  // the same for each block of a piece
  bool keeps_ = false;
  std::vector<double> kept_;  // the same for each block so far
  HostArray<float> row_;      // one for each thread
};

// The same for rows in a GPU's memory, with the same bytes. Each waits until it is done; one read of the rows.
//
// As DataSurvey::add: adds to `sums`, the columns' sums and then their squares', and returns the first row, counted
// from `rows`, with a NaN or an infinity, or -1.
int64_t survey_cuda(const MatrixView& rows, const std::vector<float>& origin, bool directions, bool check_finite,
                    std::vector<double>& sums, const Resources& resources);

inline constexpr int kMostDataSamples = 256;  // a block of a GPU holds them
// As sample_data, with `samples` evenly spread rows.
DataSample sample_cuda(const MatrixView& rows, int64_t samples, const Resources& resources);

}  // namespace kith
