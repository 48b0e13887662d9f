// Where the training of additive codes begins.
//
//   opq       product codes behind a rotation: each book has a sub-space of its own. Where the books do not divide the
//             columns, sub-spaces are of unequal width: the rotation goes to some columns more
//   residual  k-means of what the books before leave, one book after the other
//   random    none: codes are drawn, and the first update finds their books
#pragma once

#include <kith/local_search_quantizer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace kith {

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

}  // namespace kith
