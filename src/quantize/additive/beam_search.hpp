// Codes of rows book by book, along the best paths so far.
//
// A path is codes of the first books; its residual is the row less their codewords, one f32 subtraction after the
// other. The paths after a book are the first `beam` by (canonical squared distance of the residual and the book's
// codeword, the path's place before, code).
//
// Cost: books x beam x 2^bits x cols multiply-adds in float64 a row.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "quantize/additive/codebooks.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace kith {

// Paths of one row, extended by a book at a time. One thread's.
class BeamPaths {
 public:
  BeamPaths(const Codebooks& books, int64_t beam);

  // How many paths there are after so many books.
  static int64_t count_after(int64_t books, int bits, int64_t beam);

  // `paths`: codes of the paths after k books, of books().books bytes each; they become those after k + 1. `row`: f32.
  void extend(const Codebooks& books, int64_t k, const float* row, uint8_t* paths);
  // The row less the codewords of a path of k books.
  static void residual(const Codebooks& books, int64_t k, const float* row, const uint8_t* path, float* out);

 private:
  int64_t beam_;
  std::vector<float> residual_;
  std::vector<uint32_t> every_;  // codewords of a book
  std::vector<float> keys_;
  std::vector<uint64_t> found_;
  std::vector<uint8_t> before_;
};

// Rows of any dtype in host memory. `codes`: a byte for each row and book.
void encode_beam(const Codebooks& books, int64_t beam, const MatrixView& rows, uint8_t* codes,
                 const Resources& resources);

}  // namespace kith
