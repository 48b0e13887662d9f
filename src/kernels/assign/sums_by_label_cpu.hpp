// Rows added up by their labels in float64, in the order of the rows: the sums of k-means with few centres, and of
// codewords.
//
// Cost: one read of every row, and an addition for each value. (Sorting rows by label first, so that a sum stays in
// registers, takes longer than it saves.)
#pragma once

#include <kith/view.hpp>

#include <cstdint>

namespace kith {

// Adds the rows to sums: the row's to those of its label, labels x cols, times its weight where there are weights;
// `weight_sums` are added to alike.
void add_rows_cpu(const MatrixView& rows, const int32_t* labels, const float* weights, double* sums,
                  double* weight_sums);
// The same for f32 rows whose labels are codes, each of which counts once.
void add_rows_cpu(const MatrixView& rows, const uint8_t* labels, double* sums, double* counts);

}  // namespace kith
