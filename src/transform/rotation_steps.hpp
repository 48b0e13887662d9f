// The steps of training a rotation for product codes (opq.hpp) on one device: rotating rows, updating codewords, and
// finding the rotation nearest to a product of both. The loop is shared by all devices, and so are the bytes: products
// are chains of multiply-adds in f32 (dense.hpp), sums of codewords are exact, and other sums have a fixed order.
//
// If M is the product of the decoded rows with the rows, the next rotation is the orthonormal matrix nearest to M, its
// polar factor (the orthogonal Procrustes problem; Schoenemann, 1966). It is found by the Newton-Schulz iteration X <-
// (3 I - X X') X / 2, whose products use any device well, scaled so that small singular values grow by 2.5 a step
// instead of 1.5 (Chen and Chow, "A stable scaling of Newton-Schulz for improving the sign function computation",
// 2014). A small multiple of the last rotation is added to M first, so that directions missing in M stay unchanged. M
// itself is a sum in f32, so the steps are in f32 too.
#pragma once

#include <kith/resources.hpp>

#include "core/host_device.hpp"
#include "kernels/dense/dense.hpp"
#include "transform/principal_axes.hpp"
#include "transform/training_rows.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class RotationSteps {
 public:
  virtual ~RotationSteps() = default;

  // Loads the training rows, centred and scaled to a variance near 1, so that squares fit f32.
  virtual PrincipalAxes load(const TrainingRows& rows) = 0;
  virtual void set_rotation(const Dense& rotation) = 0;  // out x in, rounded to f32
  virtual void get_rotation(float* rotation) = 0;
  // Rotates the rows.
  virtual void turn() = 0;
  // Initialises codewords of the rotated rows (sub_codebooks.hpp).
  virtual void start_codewords(uint64_t seed) = 0;
  virtual void assign() = 0;
  virtual void move_codewords() = 0;
  virtual double code_error() = 0;
  virtual void get_codewords(float* codewords) = 0;
  virtual void set_codewords(const float* codewords) = 0;
  // Replaces the rotated rows by their decoded codes, and computes M, the product of these with the rows.
  virtual void multiply_decoded() = 0;

  // X becomes M over a bound of its largest singular value, and `share` of the rotation.
  virtual void begin_nearest(float share) = 0;
  // X X', and the sum of the squares by which it departs from the identity: of each row, then of all.
  virtual void square_nearest() = 0;
  virtual double departure() = 0;
  // X becomes (own I + squared X X') X.
  virtual void refine_nearest(float own, float squared) = 0;
  // The rotation becomes X.
  virtual void take_nearest() = 0;
};

// Replaces the rotation by the one nearest to M. If the iteration
// does not converge, the rotation stays unchanged.
void take_nearest_rotation(RotationSteps& steps);

struct RotationShape {
  int64_t rows = 0;
  int64_t in = 0;  // columns
  int64_t out = 0;
  int64_t parts = 0;  // of the codes; divides `out`

  int64_t small_side() const { return in < out ? in : out; }
};

// M is a long sum, divided into enough parts for any device.
inline constexpr ProductTerms kDecodedTerms{.tasks = 64};

// What a value of X X' adds to its departure.
KITH_HOST_DEVICE inline double departure_squared(float value, bool diagonal) {
  const double departs = static_cast<double>(value) - (diagonal ? 1.0 : 0.0);
  return departs * departs;
}

// The power of two that brings a largest variance near 1.
double scale_of_variance(double variance);

// The largest sum of a row's absolute values in X X' bounds the square of the largest singular value. Returns the
// factor by which X is scaled; 0 for a zero matrix.
float scale_of_bound(double largest_row_sum);

std::unique_ptr<RotationSteps> make_rotation_steps_cpu(const RotationShape& shape, const Resources& resources);
// Unsupported without CUDA.
std::unique_ptr<RotationSteps> make_rotation_steps_cuda(const RotationShape& shape, int device,
                                                        const Resources& resources);

}  // namespace kith
