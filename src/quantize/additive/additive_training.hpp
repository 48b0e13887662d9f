// Training of additive codes by local search (LSQ) and beam search (RQ), and encoding by beam search.
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

// The first codebooks of training.
//
//   opq       product codes after a rotation: each book has a sub-space of its own. If the books do not divide the
//             columns, the rotation adds a few columns, so that sub-spaces differ in width
//   residual  k-means of the residuals of the books before, one book after the other
//   random    none: the first codes are random, and the first update finds their books
inline constexpr int64_t kFirstCodebookRows = int64_t{1} << 16;  // at most this many rows are used

// books x 2^bits x cols, from f32 rows in host memory; empty for random.
std::vector<float> first_codebooks(AdditiveStart start, const MatrixView& rows, int64_t books, int bits, uint64_t seed,
                                   const Resources& resources);
// k-means of the rows: 2^bits x cols. With fewer distinct rows, codewords repeat.
std::vector<float> kmeans_codebook(const MatrixView& rows, int bits, uint64_t seed, const Resources& resources);
// The least memory of each, beside the rows.
Footprint first_codebooks_footprint(AdditiveStart start, int64_t rows, int64_t cols, int64_t books, int bits,
                                    const Resources& resources);
Footprint kmeans_codebook_footprint(int64_t rows, int64_t cols, int bits, const Resources& resources);

// Training rows.
//
// InvalidArgument for fewer rows than codewords in a book, and a warning for few. `what`: the subject of both.
void check_training_rows(std::string_view what, int64_t rows, int bits, const Resources& resources);

// All rows as f32, or a sample of `most`, drawn by the seed. InvalidArgument that names the row for a NaN or infinity.
HostArray<float> training_sample(RowSource& source, int64_t most, uint64_t seed, const Resources& resources);

// --- local search

// Training of additive codes (LSQ) alternates between updating the codebooks and the codes (Martinez et al.,
// "Revisiting additive quantization", 2016). With annealing, every round but the last moves the codewords at random, by
// decreasing amounts (Martinez et al., "LSQ++", 2018, SR-D), which are proportional to the residuals: at first sums of
// codewords move by about `anneal` times their distance from the rows. LSQ++ uses the spread of the rows instead, which
// is too much when residuals are small.
//
// Without annealing the objective, |X - C B|^2 + lambda |C|^2, falls with every round, except for rounding.
//
// Cost of a round: an update (local_search_steps.hpp) and some rounds of local search for every row. Memory: up to
// kMostTrainingRows training rows as f32, and that of these two steps.
inline constexpr int64_t kMostTrainingRows = int64_t{1} << 20;  // beyond that, a sample

Footprint local_search_training_footprint(const LocalSearchParams& params, const RowsInfo& rows,
                                          const Resources& resources);

// After each round `trained` has its codebooks, on their grid, coarse ones first, and `history` one more objective.
void train_local_search(const LocalSearchParams& params, RowSource& rows, std::vector<float>& trained,
                        std::vector<double>& history, const Resources& resources);

// --- beam search

// Encoding by beam search, book by book.
//
// A path is codes of the first books; its residual is the row minus their codewords, subtracted one by one in f32.
// After each book the paths are the first `beam` by (canonical squared distance of the residual and the book's
// codeword, the path's place before, code).
//
// They are found by f32 products of the residuals of some rows with the book. The error bound leaves hardly more
// codewords than needed; among these the canonical distances decide.
//
// Cost: books x beam x 2^bits x cols multiply-adds in f32 per row. Memory: 4 bytes per codeword of a book and per
// column, for each path of a batch.

// The row minus the codewords of a path of k books.
void path_residual(const Codebooks& books, int64_t k, const float* row, const uint8_t* path, float* out);

// Rows of any dtype in host memory. `codes`: a byte per row and book.
void encode_beam(const Codebooks& books, int64_t beam, const MatrixView& rows, uint8_t* codes,
                 const Resources& resources);
Footprint beam_encoding_footprint(const Codebooks& books, int64_t beam, int64_t rows, const Resources& resources);

// Training of residual codes: k-means of the residuals of each row's best path, one book after the other.
//
// Cost: for each book a k-means of the rows and a step of the beam search. Memory: up to 65,536 rows and their
// residuals as f32, and beam x books bytes per row.
//
// books x 2^bits x cols.
std::vector<float> train_residual(const ResidualQuantizerParams& params, RowSource& rows, const Resources& resources);
Footprint residual_training_footprint(const ResidualQuantizerParams& params, const RowsInfo& rows,
                                      const Resources& resources);

}  // namespace kith
