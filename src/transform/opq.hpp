// Rotations for product codes: Ge, He, Ke and Sun, "Optimized product quantization" (2013).
//
// Rows are centred. The first rotation deals the principal axes out to the parts so that each part gets the same
// product of variances, the best choice for normal data (section 4.2 there). Then, in rounds (section 4.1): rows are
// rotated, the codewords of each part take a Lloyd step, and the rotation becomes the one that brings the rows closest
// to what their codes stand for (polar_factor). Every step lowers the error of reconstructing the rows in their own
// space.
//
// To fewer columns than the rows have, what is rotated away counts as error too; to more, some directions stay empty
// and parts have room to spare.
//
// Cost of a round: rows x in x out x 2 + rows x out x 256 multiply-adds in f32; memory: rows x (in + out) floats, of at
// most 65,536 rows.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "kernels/dense/dense.hpp"
#include "transform/training_rows.hpp"

#include <cstdint>

namespace kith {

// Product codes while a rotation is trained for them: for each part of the columns up to 256 codewords that follow the
// rows from round to round (Lloyd's steps). Here codes need not be exact: distances are |c|^2 / 2 - x c in f32
// (least_codewords_cpu).
//
// The operations of a pair are the same with every instruction set, ties go to the smaller codeword, and sums are in
// float64 in the order of rows: the same bytes on every CPU and for any number of threads.
// Cost of a step: rows x cols x codewords multiply-adds in f32; a code for each row and part.
class SubCodebooks {
 public:
  static constexpr int64_t kMostCodewords = 256;

  // For `rows` rows of `cols` columns, which `parts` divides. No more codewords than rows.
  SubCodebooks(int64_t rows, int64_t cols, int64_t parts, const Resources& resources);

  // Codewords from rows drawn by a seed, other ones for each part.
  void start(DenseView<const float> rows, uint64_t seed);
  // Codes of the rows.
  void assign(DenseView<const float> rows, const Resources& resources);
  // The sum of the squared distances of rows to what their codes stand for.
  double error(DenseView<const float> rows) const;
  // Every codeword to the mean of its rows. One without rows takes a half of those of the largest.
  void move(DenseView<const float> rows, const Resources& resources);
  // Each row becomes what its codes stand for.
  void decode(DenseView<float> rows, const Resources& resources) const;

 private:
  float* codebook(int64_t part) const { return codewords_.data() + part * part_cols_ * kMostCodewords; }
  uint8_t* codes(int64_t part) const { return codes_.data() + part * rows_; }

  int64_t rows_ = 0;
  int64_t parts_ = 0;
  int64_t part_cols_ = 0;
  int64_t count_ = 0;           // codewords of a part
  HostArray<float> codewords_;  // parts x kMostCodewords x part_cols
  HostArray<uint8_t> codes_;    // parts x rows
  HostArray<float> groups_;     // codewords as they are compared, of each part
  HostArray<float> scratch_;    // of each thread
};

struct OpqShape {
  int64_t out = 0;      // columns
  int64_t parts = 0;    // of the codes; divides `out`
  int64_t rounds = 50;  // of codewords and rotation in turn
};

// out x in. Its rows are orthonormal, or its columns where there are more rows.
Dense optimized_rotation(const TrainingRows& rows, const OpqShape& shape, uint64_t seed, const Resources& resources);
Footprint optimized_rotation_footprint(const TrainingRowsShape& rows, const OpqShape& shape,
                                       const Resources& resources);

}  // namespace kith
