// From sums to centres: means, or for spherical k-means the sums' directions. On the host for every backend, in
// float64, so that all make the same centres.
#pragma once

#include <kith/view.hpp>

#include "cluster/centre_sums.hpp"

namespace kith {

// Scales every centre to length 1; one of zeros stays.
void normalise_centres(const MutableMatrixView& centres);

// Moves every centre that has weight to the mean of its rows. Returns the sum of the squared moves.
double move_to_means(const SumsView& sums, const MutableMatrixView& centres, bool spherical);

// A mini-batch's step (Sculley 2010): every centre becomes the mean of all rows it has ever been given, `counts` being
// the weight of those before this batch, which is added to them.
void move_by_batch(const SumsView& sums, const MutableMatrixView& centres, double* counts, bool spherical);

}  // namespace kith
