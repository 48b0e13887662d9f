// From sums to centres: means, or for spherical k-means the sums' directions, in float64, so that all backends make the
// same centres (kmeans_steps_cuda.hpp on a GPU). How far centres move is added up for each in the canonical order of
// squared distances, and then in the order of the centres.
#pragma once

#include <kith/view.hpp>

#include "kernels/assign/centre_sums.hpp"

namespace kith {

// Scales every centre to length 1; one of zeros stays.
void normalise_centres(const MutableMatrixView& centres);

// Moves every centre that has weight to the mean of its rows. Returns the sum of the squared moves.
double move_to_means(const SumsView& sums, const MutableMatrixView& centres, bool spherical);

// A mini-batch's step (Sculley 2010): every centre becomes the mean of all rows it has ever been given, `counts` being
// the weight of those before this batch, which is added to them.
void move_by_batch(const SumsView& sums, const MutableMatrixView& centres, double* counts, bool spherical);

// The sum of the squared moves from one f32 matrix to another of the same shape.
double squared_moves(const float* before, const float* after, int64_t centres, int64_t cols);

}  // namespace kith
