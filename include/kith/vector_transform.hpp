// Transforms of vectors: what they go through before they are compressed or searched.
//
// A transform is written as in FAISS, steps divided by commas:
//
//   PCA64       centred, then the 64 directions in which rows differ most
//   OPQ16       rotated for product codes of 16 parts; OPQ16_64 to 64 columns, fewer, as many or more than there are
//   RR64        a random rotation to 64 columns; RR keeps the columns
//   Centre      less the mean
//   L2norm      to length 1; a zero vector stays zero
//   Pad128      zeros behind, up to 128 columns
//
// Training learns from a sample of the rows (65,536 of them, or for PCA 16 for each column); the same rows and seed give
// the same bytes with any number of threads, on every processor and GPU, from a file as from memory.
// Applying has one meaning too: products are float64 sums in a fixed order, rounded once to f32, on CPUs and GPUs.
//
// Rows and outputs may lie in host memory or in that of a GPU. Every function returns when its result is complete.
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

// What a trained step is, as plain data.
// y = matrix * x + offset (linear), x + offset (shift), x / |x| (unit_length), zeros behind x (padding).
struct TransformStep {
  enum class Kind : uint8_t { linear, shift, unit_length, padding };
  Kind kind = Kind::linear;
  std::string name;  // what made it: "OPQ", "PCA", "RR", ...
  int64_t in = 0;
  int64_t out = 0;
  std::vector<float> matrix;  // out x in
  std::vector<float> offset;  // out; a linear step may have none
};

struct VectorTransformParams {
  std::string steps;         // "L2norm,PCA64"
  uint64_t seed = 0;         // of the training sample and of random rotations
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// One thread may train while others apply: these use what was there when they began.
class KITH_EXPORT VectorTransform {
 public:
  // Throws InvalidArgument for steps that make no sense.
  explicit VectorTransform(VectorTransformParams params);
  ~VectorTransform();
  VectorTransform(VectorTransform&&) noexcept;
  VectorTransform& operator=(VectorTransform&&) noexcept;

  // After an exception the former state stays.
  void train(const MatrixView& rows, const Resources& resources = Resources());
  void train(const VectorFile& rows, const Resources& resources = Resources());

  // Takes steps that were trained before, and gives them.
  void set_steps(std::vector<TransformStep> steps, const Resources& resources = Resources());
  std::vector<TransformStep> steps() const;

  const VectorTransformParams& params() const;
  bool trained() const;
  int64_t in() const;   // columns that it takes; 0 before training, and so are
  int64_t out() const;  // those that it makes

  // Rows of any dtype; `to`: f32, rows x out().
  void apply(const MatrixView& rows, const MutableMatrixView& to, const Resources& resources = Resources()) const;
  // The way back, f32 rows of out() columns to rows x in(): exact up to rounding but for what was lost. Dropped columns
  // come back as the mean has them, lengths stay 1. Unsupported for a matrix that is not orthonormal.
  void reverse(const MatrixView& rows, const MutableMatrixView& to, const Resources& resources = Resources()) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A trained transform in a .kith file, with its parameters (docs/file-formats.md), and one from such a file. InvalidState
// for a transform that is not trained; CorruptFile and IoError name the file.
KITH_EXPORT void save_transform(const VectorTransform& transform, const std::string& path,
                                const Resources& resources = Resources());
KITH_EXPORT VectorTransform load_transform(const std::string& path, const Resources& resources = Resources());

}  // namespace kith
