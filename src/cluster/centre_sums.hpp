// The sum of each centre's rows, in one order whatever the threads, pieces and devices, so that means have the same
// bytes everywhere.
//
// The order: rows are in blocks of sum_block(clusters), counted from the first row of the data. A centre adds up its
// rows of a block in the order of their numbers, beginning with zero; these partial sums are added to its total in the
// order of the blocks. All in float64; a weight times an f32 value is exact there. A block has some 64 rows for each
// centre: enough that partial sums are few beside the rows, little enough that a GPU has many of them to work on.
//
// Done by a stable counting sort of each piece's rows by centre, then for each centre on its own. Cost: one read of
// every row, in scattered order; 16 bytes a column and centre, 4 a row of the largest piece.
#pragma once

#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kith {

inline constexpr int64_t kSumBlock = 1024;  // what is summed over all rows alike, and what pieces are multiples of

// As many rows as whole blocks of kSumBlock hold, at least one.
constexpr int64_t whole_sum_blocks(int64_t rows) { return std::max<int64_t>(rows / kSumBlock, 1) * kSumBlock; }

constexpr int64_t sum_block(int64_t clusters) {
  return std::max(kSumBlock, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(64 * clusters))));
}

// Totals in host memory: clusters x cols sums and one weight for each centre.
struct SumsView {
  double* sums = nullptr;
  double* weights = nullptr;
};

class CentreSums {
 public:
  static int64_t bytes_for(int64_t clusters, int64_t cols, int64_t largest_piece, int threads);
  CentreSums(int64_t clusters, int64_t cols, int64_t largest_piece, const Resources& resources);

  void clear();
  // The next rows of the data, of which `first` is the first one's number. Every label is a centre; weights may be
  // null.
  void add(const MatrixView& rows, int64_t first, const int32_t* labels, const float* weights, ProgressMeter& meter,
           const Resources& resources);
  // Of all rows since clear(), after which no more are added.
  SumsView finish();

 private:
  void sort(const int32_t* labels, int64_t count);
  void add_centre(int64_t centre, const MatrixView& rows, int64_t first, const float* weights, float* row) const;
  void close_block(int64_t centre) const;

  int64_t clusters_;
  int64_t cols_;
  int64_t block_;
  HostArray<double> sums_;
  HostArray<double> weights_;
  HostArray<double> open_;     // for each centre: its block's sums, their weight, and the number of the block
  HostArray<int64_t> starts_;  // where each centre's rows begin in order_
  HostArray<uint32_t> order_;  // row numbers, by centre
  HostArray<float> scratch_;   // a row for each thread
};

}  // namespace kith
