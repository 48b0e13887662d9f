// Rows so large or small that squares of their differences leave f32's range are multiplied by a power of two, which is
// exact; centres, distances and objectives are scaled back.
//
// The power depends on up to 256 evenly spread rows, and on the centres if they are given; it is 1 for all but extreme
// data. Before values are scaled up all rows are scanned, so that none overflows. Scaled rows are made piece by piece
// from the source, as f32 on the host, as if read from a file. Memory: a piece.
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

// The rows of a fit or a prediction, as a source that can be opened for a number of rows at a time.
struct KMeansRows {
  RowsInfo info;
  std::function<std::unique_ptr<RowSource>(int64_t most, const Resources& resources)> open;
};

// The exponent for rows that are compared with these centres (f32 on the host, or none). 0 unless the values are
// extreme.
int scale_exponent(const KMeansRows& rows, const MatrixView& centres, const Resources& resources);
// The same with the result of sample_data().
int scale_exponent(const KMeansRows& rows, const DataSample& sample, const MatrixView& centres,
                   const Resources& resources);

// The rows times 2^exponent; the rows themselves if the exponent is 0.
KMeansRows scaled_rows(const KMeansRows& rows, int exponent, const Resources& resources);
// Host memory of scaled rows beside their pieces: the source's buffers for two reads.
int64_t scaled_read_bytes(const RowsInfo& rows);
// A copy on the host, as f32.
MatrixBuffer scaled_copy(const MatrixView& rows, int exponent, const Resources& resources);
// Scales f32 rows on the host in place. Values that would overflow become the largest finite one.
void scale_values(const MutableMatrixView& rows, int exponent);

}  // namespace kith
