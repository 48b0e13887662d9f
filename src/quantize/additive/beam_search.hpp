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
#include "quantize/additive/codebooks.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <vector>

namespace kith {

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
