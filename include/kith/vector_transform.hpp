// Transforms of vectors, applied before they are compressed or searched.
//
// A transform is written as in FAISS, steps separated by commas:
//
//   PCA64       subtracts the mean, then projects on the 64 directions of largest variance
//   OPQ16       rotates for product codes of 16 parts; OPQ16_64 to 64 columns, fewer or more than before
//   RR64        a random rotation to 64 columns; RR keeps the number of columns
//   Centre      subtracts the mean
//   L2norm      scales to length 1; a zero vector stays zero
//   Pad128      appends zeros up to 128 columns
//
// Training uses a sample of the rows (65,536 of them, for PCA 16 per column). The same rows and seed give the same
// bytes with any number of threads, on every processor and GPU, from files as from memory. So does applying: products
// are float64 sums in a fixed order, rounded once to f32.
//
// Rows and outputs may be in host memory or in that of a GPU. Functions return when their result is complete.
#pragma once

#include <kith/export.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

// A trained step as plain data: y = matrix * x + offset (linear), x + offset (shift), x / |x| (unit_length), or x
// followed by zeros (padding).
struct TransformStep {
  enum class Kind : uint8_t { linear, shift, unit_length, padding };
  Kind kind = Kind::linear;
  std::string name;  // its origin: "OPQ", "PCA", "RR", ...
  int64_t in = 0;
  int64_t out = 0;
  std::vector<float> matrix;  // out x in
  std::vector<float> offset;  // out; a linear step may have none
};

struct VectorTransformParams {
  std::string steps;         // "L2norm,PCA64"
  uint64_t seed = 0;         // for the training sample and random rotations
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// One thread may train while others apply: these use the training before.
class KITH_EXPORT VectorTransform {
 public:
  // Throws InvalidArgument for steps that make no sense.
  explicit VectorTransform(VectorTransformParams params);
  ~VectorTransform();
  VectorTransform(VectorTransform&&) noexcept;
  VectorTransform& operator=(VectorTransform&&) noexcept;

  // If this throws, the previous training stays.
  void train(const MatrixView& rows, const Resources& resources = Resources());
  void train(const VectorFile& rows, const Resources& resources = Resources());

  // Sets steps that were trained before; returns the trained ones.
  void set_steps(std::vector<TransformStep> steps, const Resources& resources = Resources());
  std::vector<TransformStep> steps() const;

  const VectorTransformParams& params() const;
  bool trained() const;
  int64_t dimension_in() const;   // columns of the vectors that it takes; 0 before training
  int64_t dimension_out() const;  // columns of those that it makes; 0 before training

  // Rows of any dtype; `to`: f32, rows x dimension_out().
  void apply(const MatrixView& rows, const MutableMatrixView& to, const Resources& resources = Resources()) const;
  // The inverse: f32 rows of dimension_out() columns to rows x dimension_in(), exact up to rounding, except for lost
  // information: dropped directions come back as the mean, lengths stay 1. Unsupported for a matrix that is not
  // orthonormal.
  void reverse(const MatrixView& rows, const MutableMatrixView& to, const Resources& resources = Resources()) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Saves and loads a trained transform with its parameters as a .kith file (docs/file-formats.md). InvalidState for an
// untrained one; CorruptFile and IoError name the file.
KITH_EXPORT void save_transform(const VectorTransform& transform, const std::string& path,
                                const Resources& resources = Resources());
KITH_EXPORT VectorTransform load_transform(const std::string& path, const Resources& resources = Resources());

}  // namespace kith
