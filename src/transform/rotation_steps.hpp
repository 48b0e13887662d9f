// What a rotation for product codes is trained by (opq.hpp), on one device: rows that are turned, codewords that follow
// them, and the nearest rotation to a product of both. The loop is the same for every device, and so are the bytes:
// products are chains of multiply-adds in f32 (dense.hpp), sums of codewords are exact, and the others have an order.
//
// Where M is the product of what codes stand for with the rows, the next rotation is the orthonormal matrix nearest to
// M, its polar factor (the orthogonal Procrustes problem; Schoenemann, 1966). It is found by Newton's and Schulz's
// iteration X <- (3 I - X X') X / 2, whose products fill any machine, scaled so that small singular values grow 2.5
// times a step instead of 1.5 (Chen and Chow, "A stable scaling of Newton-Schulz for improving the sign function
// computation", 2014). A little of the rotation before is added to M first: directions that M lacks stay as they were.
// M itself is a sum in f32, so steps are in f32 too.
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

  // The rows of the training, centred and scaled to a variance near 1, of which squares are numbers in f32.
  virtual PrincipalAxes load(const TrainingRows& rows) = 0;
  virtual void set_rotation(const Dense& rotation) = 0;  // out x in, rounded to f32
  virtual void get_rotation(float* rotation) = 0;
  // The rows by the rotation.
  virtual void turn() = 0;
  // Codewords, as in sub_codebooks.hpp, of the turned rows.
  virtual void start_codewords(uint64_t seed) = 0;
  virtual void assign() = 0;
  virtual void move_codewords() = 0;
  virtual double code_error() = 0;
  virtual void get_codewords(float* codewords) = 0;
  virtual void set_codewords(const float* codewords) = 0;
  // M: what the codes of the turned rows stand for, which takes their place, times the rows.
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

// The rotation becomes the one nearest to M. Where the iteration does not come to an end it stays as it is, which is a
// rotation too.
void take_nearest_rotation(RotationSteps& steps);

struct RotationShape {
  int64_t rows = 0;
  int64_t in = 0;  // columns
  int64_t out = 0;
  int64_t parts = 0;  // of the codes; divides `out`

  int64_t small_side() const { return in < out ? in : out; }
};

// M is a long sum: it is cut into enough parts for any machine.
inline constexpr ProductTerms kDecodedTerms{.tasks = 64};

// What a value of X X' adds to its departure.
KITH_HOST_DEVICE inline double departure_squared(float value, bool diagonal) {
  const double departs = static_cast<double>(value) - (diagonal ? 1.0 : 0.0);
  return departs * departs;
}

// The power of two that brings a largest variance near 1.
double scale_of_variance(double variance);

// The larger of the sums of a product's absolute rows bounds the square of the largest singular value. What X is
// multiplied by then; 0 where there is nothing.
float scale_of_bound(double largest_row_sum);

std::unique_ptr<RotationSteps> make_rotation_steps_cpu(const RotationShape& shape, const Resources& resources);
// Unsupported without CUDA.
std::unique_ptr<RotationSteps> make_rotation_steps_cuda(const RotationShape& shape, int device,
                                                        const Resources& resources);

}  // namespace kith
