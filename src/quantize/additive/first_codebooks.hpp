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

#include <cstdint>
#include <vector>

namespace kith {

inline constexpr int64_t kFirstCodebookRows = int64_t{1} << 16;  // more are not looked at

// books x 2^bits x cols of f32 rows in host memory, or nothing where codes are to be drawn.
std::vector<float> first_codebooks(AdditiveStart start, const MatrixView& rows, int64_t books, int bits, uint64_t seed,
                                   const Resources& resources);
// k-means of the rows: 2^bits x cols. Fewer distinct rows give codewords twice.
std::vector<float> kmeans_codebook(const MatrixView& rows, int bits, uint64_t seed, const Resources& resources);

}  // namespace kith
