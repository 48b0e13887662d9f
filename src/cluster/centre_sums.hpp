// The sum of each centre's rows, in one order whatever the threads and pieces, so that means have the same bytes
// everywhere, on a GPU too.
//
// The order: rows are in blocks of kSumBlock, counted from the first row of the data. A centre adds up its rows of a
// block in the order of their numbers, beginning with zero; these partial sums are added to its total in the order of
// the blocks. All in float64; a weight times an f32 value is exact there. Rows come in pieces of whole blocks.
//
// Done by a stable counting sort of each piece's rows by centre, then for each centre on its own. Cost: one read of
// every row, in scattered order; 8 bytes a column and centre, 4 a row of the largest piece.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/view.hpp>

#include "core/parallel_for.hpp"

#include <cstdint>

namespace kith {

inline constexpr int64_t kSumBlock = 1024;

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
  // The next rows of the data. Every label is a centre; weights may be null.
  void add(const MatrixView& rows, const int32_t* labels, const float* weights, ProgressMeter& meter,
           const Resources& resources);
  SumsView view() const { return {sums_.as<double>(), weights_.as<double>()}; }

 private:
  void sort(const int32_t* labels, int64_t count);
  void add_centre(int64_t centre, const MatrixView& rows, const float* weights, double* partial, float* row) const;

  int64_t clusters_;
  int64_t cols_;
  HostBuffer sums_;
  HostBuffer weights_;
  HostBuffer starts_;   // where each centre's rows begin in order_
  HostBuffer order_;    // row numbers, by centre
  HostBuffer scratch_;  // a partial sum and a row for each thread
};

}  // namespace kith
