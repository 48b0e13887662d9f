// Codes of rows book by book, along the best paths so far.
//
// A path is codes of the first books; its residual is the row less their codewords, one f32 subtraction after the
// other. The paths after a book are the first `beam` by (canonical squared distance of the residual and the book's
// codeword, the path's place before, code).
//
// Which they are is found by products of the residuals of some rows with the book, in f32. Their error bound leaves
// hardly more codewords than are wanted, and of these the canonical distances decide.
//
// Cost: books x beam x 2^bits x cols multiply-adds in f32 a row. Memory: 4 bytes for each codeword of a book, and for
// each column, of each path of a batch.
#pragma once

#include <kith/residual_quantizer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "quantize/additive/codebooks.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// Paths of a batch of rows, extended by a book at a time.
class BeamSearch {
 public:
  // For batches of up to batch_rows().
  BeamSearch(const Codebooks& books, int64_t beam, const Resources& resources);

  static int64_t batch_rows(const Codebooks& books, int64_t beam);
  // How many paths there are after so many books.
  static int64_t count_after(int64_t books, int bits, int64_t beam);

  // `rows`: f32, one after the other. `paths`: for each row `beam` places of books().books bytes, of which the first
  // count_after(k) are its paths after k books; they become those after k + 1. The book may have changed since the last
  // call.
  void extend(int64_t k, const float* rows, int64_t count, uint8_t* paths, ProgressMeter& meter);

 private:
  // What one thread chooses paths with.
  struct Worker {
    std::vector<float> values;
    std::vector<uint32_t> listed;
    std::vector<float> keys;
    std::vector<uint64_t> found;
    std::vector<uint8_t> before;
  };

  void prepare_book(int64_t k);
  void choose(int64_t k, int64_t held, int64_t row, uint8_t* paths, Worker& worker) const;

  const Codebooks books_;
  const int64_t beam_;
  const Resources resources_;
  HostArray<float> residuals_;  // of a batch's paths
  HostArray<float> squares_;    // of these
  HostArray<float> products_;   // with the book
  std::vector<float> word_squares_;
  double longest_word_ = 0;
  std::vector<Worker> workers_;
};

// The row less the codewords of a path of k books.
void path_residual(const Codebooks& books, int64_t k, const float* row, const uint8_t* path, float* out);

// Rows of any dtype in host memory. `codes`: a byte for each row and book.
void encode_beam(const Codebooks& books, int64_t beam, const MatrixView& rows, uint8_t* codes,
                 const Resources& resources);
Footprint beam_encoding_footprint(const Codebooks& books, int64_t beam, int64_t rows, const Resources& resources);

// Training of residual codes: k-means of what the best path of each row leaves, one book after the other.
//
// Cost: a k-means of the rows and a step of the beam search for each book. Memory: the rows and their residuals as f32,
// up to 65,536 of them, and beam x books bytes a row.
//
// books x 2^bits x cols.
std::vector<float> train_residual(const ResidualQuantizerParams& params, RowSource& rows, const Resources& resources);
Footprint residual_training_footprint(const ResidualQuantizerParams& params, const RowsInfo& rows,
                                      const Resources& resources);

}  // namespace kith
