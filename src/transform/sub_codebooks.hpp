// Product codes during the training of a rotation: for each part of the columns up
// to 256 codewords, updated in every round by a Lloyd step. Codes need not be
// exact here: distances are |c|^2 / 2 - x c in f32 (least_codewords_cpu).
//
// The operations of a pair are the same with every instruction set and on GPUs (rotation_steps_cuda.cu), and ties go to
// the smaller codeword. Means are of values rounded to multiples of 2^-28, whose sums in float64 are exact, so that
// their order does not matter: rows must have a variance near 1.
// Cost of a step: rows x cols x codewords multiply-adds in f32; a code for each row and part.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "core/host_device.hpp"
#include "kernels/dense/dense.hpp"

#include <cstdint>
#include <vector>

namespace kith {

inline constexpr int64_t kMostSubCodewords = 256;

// Rounds a value to a multiple of 2^-28, by adding and subtracting a large number.
KITH_HOST_DEVICE inline double rounded_to_add(float value) {
  constexpr double kShift = 1.5 * 0x1p24;  // of which 2^-28 is the last digit
  return static_cast<double>(value) + kShift - kShift;
}

// Rows drawn by a seed, other ones for each part, to be the first codewords: parts x count numbers of so many rows.
std::vector<uint32_t> drawn_sub_codewords(int64_t rows, int64_t parts, int64_t count, uint64_t seed);

class SubCodebooks {
 public:
  // For `rows` rows of `cols` columns, which `parts` divides. No more codewords than rows.
  SubCodebooks(int64_t rows, int64_t cols, int64_t parts, const Resources& resources);

  // Codewords from rows drawn by a seed.
  void start(DenseView<const float> rows, uint64_t seed);
  // Codes of the rows.
  void assign(DenseView<const float> rows, const Resources& resources);
  // The sum of the squared distances of rows to what their codes stand for: of each row, then of all.
  double error(DenseView<const float> rows, const Resources& resources) const;
  // Moves every codeword to the mean of its rows. A codeword without rows takes half of those of the largest.
  void move(DenseView<const float> rows, const Resources& resources);
  // Replaces each row by the vector that its codes decode to.
  void decode(DenseView<float> rows, const Resources& resources) const;

  // parts x kMostSubCodewords x columns of a part.
  const HostArray<float>& codewords() const { return codewords_; }

 private:
  float* codebook(int64_t part) const { return codewords_.data() + part * part_cols_ * kMostSubCodewords; }
  uint8_t* codes(int64_t part) const { return codes_.data() + part * rows_; }

  int64_t rows_ = 0;
  int64_t parts_ = 0;
  int64_t part_cols_ = 0;
  int64_t count_ = 0;  // codewords of a part
  HostArray<float> codewords_;
  HostArray<uint8_t> codes_;  // parts x rows
  HostArray<double> errors_;  // of each row
  HostArray<float> groups_;   // codewords as they are compared, of each part
  HostArray<float> scratch_;  // of each thread
};

}  // namespace kith
