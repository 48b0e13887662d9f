// centre_sums.hpp for few centres, with the same bytes: blocks of rows are added up side by side, each by one thread in
// the order of its rows, and then to the totals in the order of the blocks. Rows are read once, right after they were
// assigned, and not sorted.
//
// Cost: one read of every row, in order. Memory: 8 bytes a column and centre for each thread, and twice that.
#pragma once

#include <kith/view.hpp>

#include "cluster/centre_sums.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"

#include <cstdint>
#include <functional>

namespace kith {

class FewCentreSums {
 public:
  static int64_t bytes_for(int64_t clusters, int64_t cols, int threads);
  FewCentreSums(int64_t clusters, int64_t cols, const Resources& resources);

  void clear();
  // The next rows of the data, of which `first` is the first one's number. assign(row of the piece, count, slot) fills
  // the labels before they are looked at. Weights may be null.
  using Assign = std::function<void(int64_t first, int64_t count, int slot)>;
  void add(const MatrixView& rows, int64_t first, const int32_t* labels, const float* weights, const Assign& assign,
           ProgressMeter& meter, const Resources& resources);
  // Of all rows since clear(), after which no more are added.
  SumsView finish();

 private:
  int64_t size() const { return clusters_ * (cols_ + 1); }
  void add_block(const double* block);

  int64_t clusters_;
  int64_t cols_;
  int64_t block_;
  int64_t open_block_ = -1;   // a block that has not ended, whose sums are open_
  HostArray<double> totals_;  // clusters x cols, then a weight for each
  HostArray<double> open_;    // the same
  HostArray<double> blocks_;  // the same for each thread
};

}  // namespace kith
