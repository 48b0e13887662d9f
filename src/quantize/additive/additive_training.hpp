// How additive codes are trained, by local search (LSQ) and along a beam (RQ), and codes found along a beam.
#pragma once

#include <kith/local_search_quantizer.hpp>
#include <kith/residual_quantizer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "quantize/additive/codebooks.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace kith {

// --- first codebooks

// Where the training of additive codes begins.
//
//   opq       product codes behind a rotation: each book has a sub-space of its own. Where the books do not divide the
//             columns, sub-spaces are of unequal width: the rotation goes to some columns more
//   residual  k-means of what the books before leave, one book after the other
//   random    none: codes are drawn, and the first update finds their books
inline constexpr int64_t kFirstCodebookRows = int64_t{1} << 16;  // more are not looked at

// books x 2^bits x cols of f32 rows in host memory, or nothing where codes are to be drawn.
std::vector<float> first_codebooks(AdditiveStart start, const MatrixView& rows, int64_t books, int bits, uint64_t seed,
                                   const Resources& resources);
// k-means of the rows: 2^bits x cols. Fewer distinct rows give codewords twice.
std::vector<float> kmeans_codebook(const MatrixView& rows, int bits, uint64_t seed, const Resources& resources);
// What both take at least, beside the rows.
Footprint first_codebooks_footprint(AdditiveStart start, int64_t rows, int64_t cols, int64_t books, int bits,
                                    const Resources& resources);
Footprint kmeans_codebook_footprint(int64_t rows, int64_t cols, int bits, const Resources& resources);

// The rows that additive codes are trained on, and whether there are enough.
//
// InvalidArgument for fewer rows than codewords of a book; a warning for fewer than train well. `what`: for its text.
void check_training_rows(std::string_view what, int64_t rows, int bits, const Resources& resources);

// All rows as f32, or `most` of them, drawn by the seed. InvalidArgument, naming the row, for a NaN or an infinity.
HostArray<float> training_sample(RowSource& source, int64_t most, uint64_t seed, const Resources& resources);

// --- local search

// Training of additive codes (LSQ): codebooks for the codes, codes for the codebooks, in turns (Martinez et al.,
// "Revisiting additive quantization", 2016). With annealing every round but the last moves the codewords at random, by
// less and less (Martinez et al., "LSQ++", 2018, SR-D). How far is measured by what codes leave of the rows: at first
// sums of codewords move by about `anneal` times their distance from the rows. By the rows' own spread, as in LSQ++,
// that would be too far where codes leave little of it.
//
// The objective, |X - C B|^2 + lambda |C|^2, falls with every round but for rounding, while nothing is annealed.
//
// Cost of a round: an update (local_search_steps.hpp) and some rounds of local search for every row. Memory: the
// training rows as f32, up to kMostTrainingRows of them, and what these two take.
inline constexpr int64_t kMostTrainingRows = int64_t{1} << 20;  // more are sampled

Footprint local_search_training_footprint(const LocalSearchParams& params, const RowsInfo& rows,
                                          const Resources& resources);

// After each round `trained` has its codebooks, on their grid, coarse ones first, and `history` one more objective.
void train_local_search(const LocalSearchParams& params, RowSource& rows, std::vector<float>& trained,
                        std::vector<double>& history, const Resources& resources);

// --- beam search

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
