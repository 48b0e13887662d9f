// Rotations for product codes: Ge, He, Ke and Sun, "Optimized product quantization" (2013).
//
// Rows are centred. The first rotation deals the principal axes out to the parts so that each part gets the same
// product of variances, the best choice for normal data (section 4.2 there). Then, in rounds (section 4.1): rows are
// rotated, the codewords of each part take a Lloyd step, and the rotation becomes the one that brings the rows closest
// to what their codes stand for (nearest_rotation.hpp). Every step lowers the error of reconstructing the rows in their
// own space.
//
// If neighbouring columns belong together, as in histograms, the identity may be a better first rotation, judged by the
// error of the codes. It is not used if lists follow: there it loses a percent of the nearest neighbours of SIFT
// descriptors, though its codes' error is smaller.
//
// If the output has fewer columns than the rows, what is rotated away counts as error too; if it has more, some
// directions stay empty.
//
// Rounds are steps of a backend for each device, with the same bytes (rotation_steps.hpp).
// Cost of a round: rows x in x out x 2 + rows x out x 256 multiply-adds in f32, and some 25 x in x out x the smaller of
// the two; memory: rows x (in + out) floats, of at most 65,536 rows.
#pragma once

#include <kith/resources.hpp>

#include "kernels/dense/dense.hpp"
#include "transform/training_rows.hpp"

#include <cstdint>

namespace kith {

struct OpqShape {
  int64_t out = 0;      // columns
  int64_t parts = 0;    // of the codes; divides `out`
  int64_t rounds = 50;  // of codewords and rotation in turn
  bool for_lists = false;  // codes are those of differences from the centres of lists
};

// out x in. Its rows are orthonormal, or its columns where there are more rows.
Dense optimized_rotation(const TrainingRows& rows, const OpqShape& shape, uint64_t seed, const Resources& resources);
// Its memory on the CPU, which takes over if a GPU has no room.
Footprint optimized_rotation_footprint(const TrainingRowsShape& rows, const OpqShape& shape,
                                       const Resources& resources);

}  // namespace kith
