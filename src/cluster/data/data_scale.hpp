// Rows so large or small that squares of their differences leave f32's range are multiplied by a power of two, which is
// exact; centres, distances and objectives are scaled back.
//
// Which power follows from up to 256 rows, evenly spread, and from the centres where there are some; it is 1 for all
// but extreme data. Before values are made larger all rows are looked at, so that none leaves f32. Scaled rows are made
// piece by piece from the source, as f32 on the host, as if they came from a file. Memory: a piece.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include "cluster/data/data_survey.hpp"
#include "rows/row_source.hpp"
#include "rows/rows_info.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace kith {

// Rows that a fit or a prediction can open, with room for so many at a time.
struct KMeansRows {
  RowsInfo info;
  std::function<std::unique_ptr<RowSource>(int64_t most, const Resources& resources)> open;
};

// The exponent of the power of two for rows that are compared with these centres: f32 on the host, or none. 0 unless
// they are extreme.
int scale_exponent(const KMeansRows& rows, const MatrixView& centres, const Resources& resources);
// With what sample_data() says of the rows.
int scale_exponent(const KMeansRows& rows, const DataSample& sample, const MatrixView& centres,
                   const Resources& resources);

// The rows times 2^exponent; as they are where that is 1.
KMeansRows scaled_rows(const KMeansRows& rows, int exponent, const Resources& resources);
// Host memory that scaled rows need beside their pieces: the source's own, of two reads.
int64_t scaled_read_bytes(const RowsInfo& rows);
// A copy on the host, as f32.
MatrixBuffer scaled_copy(const MatrixView& rows, int exponent, const Resources& resources);
// In place: f32 on the host. What would leave the range becomes the largest finite value.
void scale_values(const MutableMatrixView& rows, int exponent);

}  // namespace kith
