// The sum of each centre's rows, in one order whatever the threads, pieces and devices, so that means have the same
// bytes everywhere.
//
// The order: rows are in blocks of sum_block(centres), counted from the first row of the data. A centre adds up its
// rows of a block in the order of their numbers, beginning with zero; these partial sums are added to its total in the
// order of the blocks. All in float64; a weight times an f32 value is exact there. A block has some 64 rows for each
// centre: enough that partial sums are few beside the rows, little enough that a GPU has many of them to work on.
//
// Few centres: blocks are added up side by side, each by one thread, right after its rows were assigned, and then to
// the totals. One read of every row, in order; 8 bytes a column and centre for each thread, and twice that. More
// centres: a stable counting sort of each piece's rows by centre, then each centre on its own. One read of every row,
// in scattered order; 16 bytes a column and centre, 4 a row of the largest piece.
#pragma once

#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kith {

inline constexpr int64_t kSumBlock = 1024;  // rows per block of sums over all rows; pieces are multiples of it

// Rounds down to whole blocks of kSumBlock, at least one.
constexpr int64_t whole_sum_blocks(int64_t rows) { return std::max<int64_t>(rows / kSumBlock, 1) * kSumBlock; }

constexpr int64_t sum_block(int64_t centres) {
  return std::max(kSumBlock, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(64 * centres))));
}

// Totals in host memory: centres x cols sums and one weight for each centre.
struct SumsView {
  double* sums = nullptr;
  double* weights = nullptr;
};

class CentreAssigner;

class CentreSums {
 public:
  CentreSums(int64_t centres, int64_t cols, int64_t largest_piece, const Resources& resources);
  // For rows that were assigned before and are added up some centres at a time, whatever their number is.
  struct ByCentre {};
  CentreSums(int64_t centres, int64_t cols, int64_t largest_piece, ByCentre, const Resources& resources);

  void clear();  // before the first rows
  // Assigns the next rows of the data, of which `first` is the first one's number, and adds them up. Labels and keys as
  // the assigner has them; weights may be null.
  void add(CentreAssigner& assigner, const MatrixView& rows, int64_t first, int32_t* labels, float* keys,
           const float* weights, ProgressMeter& meter, const Resources& resources);
  // Completes the sums of all rows since clear(); no more may be added.
  SumsView finish();

  // By centre: what add() does in three steps. The next rows' labels; then, for any centres of which all rows before
  // these were added, the rows, of which `first` is the first one's number.
  void order_by_centre(const int32_t* labels, int64_t count);
  void add_centres(int64_t begin, int64_t end, const MatrixView& rows, int64_t first, const float* weights,
                   ProgressMeter& meter, const Resources& resources);
  // The state of these centres, state_size(end - begin) numbers, for another process to continue from.
  int64_t state_size(int64_t centres) const { return centres * (2 * cols_ + 3); }
  void write_state(int64_t begin, int64_t end, double* out) const;
  void read_state(int64_t begin, int64_t end, const double* in);

  int64_t size() const { return centres_ * (cols_ + 1); }  // of sums and weights, which are contiguous

 private:
  CentreSums(int64_t centres, int64_t cols, int64_t largest_piece, bool few, const Resources& resources);
  void add_by_block(CentreAssigner& assigner, const MatrixView& rows, int64_t first, int32_t* labels, float* keys,
                    const float* weights, ProgressMeter& meter, const Resources& resources);
  void add_to_totals(const double* block);
  void add_centre(int64_t centre, const MatrixView& rows, int64_t first, const float* weights, float* row) const;
  void close_block(int64_t centre) const;

  int64_t centres_;
  int64_t cols_;
  int64_t block_;
  bool few_;
  HostArray<double> totals_;  // centres x cols, then a weight for each
  HostArray<double> open_;    // the same for the unfinished block; with many centres, each one's sums, weight and
                              // block number
  // Few centres:
  int64_t open_block_ = -1;
  HostArray<double> blocks_;  // as the totals, for each thread
  // More:
  HostArray<int64_t> starts_;  // where each centre's rows begin in order_
  HostArray<uint32_t> order_;  // row numbers, by centre
  HostArray<float> scratch_;   // a row for each thread
};

// Rows added up by their labels in float64, in the order of the rows: the sums of k-means with few centres, and of
// codewords.
//
// Cost: one read of every row, and an addition for each value. (Sorting rows by label first, so that a sum stays in
// registers, takes longer than it saves.)
//
// Adds the rows to sums: the row's to those of its label, labels x cols, times its weight where there are weights;
// `weight_sums` are added to alike.
void add_rows_cpu(const MatrixView& rows, const int32_t* labels, const float* weights, double* sums,
                  double* weight_sums);
// The same for f32 rows whose labels are codes, each of which counts once.
void add_rows_cpu(const MatrixView& rows, const uint8_t* labels, double* sums, double* counts);

}  // namespace kith
