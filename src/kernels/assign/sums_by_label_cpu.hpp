// Rows added up by their labels in float64, in the order of the rows: the sums of k-means with few centres, and of
// codewords.
//
// A sum is loaded and stored for every row, unless rows are so many beside the labels that it pays to sort their
// numbers by label: then some columns of a sum stay in registers over all rows of a label. The order of a label's rows,
// and so every bit, is the same.
//
// Cost: one read of every row, which should lie in the nearest cache, and an addition for each value.
#pragma once

#include <kith/view.hpp>

#include <cstdint>

namespace kith {

// Adds the rows to sums: the row's to those of its label, labels x cols, times its weight where there are weights;
// `weight_sums` are added to alike. Every label is below `labels_end`.
void add_rows_cpu(const MatrixView& rows, const int32_t* labels, int64_t labels_end, const float* weights, double* sums,
                  double* weight_sums);
// The same for f32 rows whose labels are codes, each of which counts once.
void add_rows_cpu(const MatrixView& rows, const uint8_t* labels, int64_t labels_end, double* sums, double* counts);

}  // namespace kith
