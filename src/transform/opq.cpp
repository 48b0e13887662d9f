#include "transform/opq.hpp"

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "transform/dense_product.hpp"
#include "transform/logarithm.hpp"
#include "transform/pca.hpp"
#include "transform/polar_factor.hpp"
#include "transform/sub_codebooks.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kFirstSteps = 8;  // of the codewords, before the rotation turns

// Principal axes dealt out: the next goes where the product of variances is smallest and there is room.
Dense dealt_axes(const PrincipalAxes& found, const OpqShape& shape, const Resources& resources) {
  const int64_t in = found.axes.cols();
  const int64_t part_cols = shape.out / shape.parts;
  Dense rotation(shape.out, in, "a rotation", resources);
  std::vector<double> products(static_cast<size_t>(shape.parts));  // logarithms
  std::vector<int64_t> filled(static_cast<size_t>(shape.parts));
  const double least = std::max(found.variances.front() * 1e-12, 1e-300);
  for (int64_t axis = 0; axis < std::min(in, shape.out); ++axis) {
    int64_t part = -1;
    for (int64_t p = 0; p < shape.parts; ++p) {
      if (filled[static_cast<size_t>(p)] == part_cols) continue;
      if (part < 0 || products[static_cast<size_t>(p)] < products[static_cast<size_t>(part)]) part = p;
    }
    // In the unit of the least, so that a part is never better off empty.
    const double variance = std::max(found.variances[static_cast<size_t>(axis)], least) / least;
    products[static_cast<size_t>(part)] += logarithm(variance);
    const int64_t row = part * part_cols + filled[static_cast<size_t>(part)]++;
    std::copy_n(found.axes.row(axis), in, rotation.row(row));
  }
  return rotation;
}

// The columns as they are, spread evenly over the parts: data whose neighbouring columns belong together (histograms)
// has the best parts already.
Dense spread_columns(int64_t in, const OpqShape& shape, const Resources& resources) {
  const int64_t part_cols = shape.out / shape.parts;
  Dense rotation(shape.out, in, "a rotation", resources);
  int64_t row = 0;
  for (int64_t c = 0; c < in; ++c) {
    row = std::max(row, c * shape.parts / in * part_cols);
    rotation(row++, c) = 1.0;
  }
  return rotation;
}

// The rows of a training, and codewords that follow them as they are turned.
class Turning {
 public:
  Turning(const TrainingRows& rows, const PrincipalAxes& found, const OpqShape& shape, const Resources& resources)
      : in_(rows.cols()),
        shape_(shape),
        values_(rows.rows() * in_, "training rows", resources),
        turned_(rows.rows() * shape.out, "rotated training rows", resources),
        matrix_(shape.out * in_, "a rotation", resources),
        products_(shape.out, in_, "a rotation", resources),
        resources_(resources) {
    rows.fetch(0, rows.rows(), values_.data());
    // To a variance near 1, of which squares are numbers in f32.
    const double variance = found.variances.front();
    const int exponent = variance > 0 ? std::ilogb(variance) / 2 : 0;
    const double scale = std::ldexp(1.0, -exponent);
    for (int64_t i = 0; i < rows.rows(); ++i) {
      float* const row = values_.data() + i * in_;
      for (int64_t c = 0; c < in_; ++c) {
        row[c] = static_cast<float>(static_cast<double>(row[c] - found.mean[static_cast<size_t>(c)]) * scale);
      }
    }
  }

  SubCodebooks make_codebooks() const { return {x().rows, shape_.out, shape_.parts, resources_}; }

  // Codewords for a first rotation; returns the error of the codes.
  double start(const Dense& rotation, SubCodebooks& codebooks, uint64_t seed) const {
    turn(rotation);
    codebooks.start(y(), seed);
    for (int64_t step = 0; step < kFirstSteps; ++step) {
      codebooks.assign(y(), resources_);
      codebooks.move(y(), resources_);
    }
    codebooks.assign(y(), resources_);
    return codebooks.error(y());
  }

  // A step of the codewords, and the rotation that is best for them.
  Dense next(const Dense& rotation, SubCodebooks& codebooks) const {
    turn(rotation);
    codebooks.assign(y(), resources_);
    codebooks.move(y(), resources_);
    codebooks.decode(y(), resources_);
    const DenseView<float> sums{matrix_.data(), shape_.out, in_, in_, 1};
    multiply(DenseView<const float>(y()).transposed(), x(), sums, {}, resources_);
    std::copy(matrix_.begin(), matrix_.end(), products_.row(0));
    return polar_factor(products_.read(), resources_);
  }

 private:
  DenseView<const float> x() const { return {values_.data(), values_.size() / in_, in_, in_, 1}; }
  DenseView<float> y() const { return {turned_.data(), x().rows, shape_.out, shape_.out, 1}; }

  void turn(const Dense& rotation) const {
    std::transform(rotation.row(0), rotation.row(0) + matrix_.size(), matrix_.begin(),
                   [](double value) { return static_cast<float>(value); });
    const DenseView<const float> r{matrix_.data(), shape_.out, in_, in_, 1};
    multiply(x(), r.transposed(), y(), {}, resources_);
  }

  int64_t in_;
  OpqShape shape_;
  HostArray<float> values_;
  HostArray<float> turned_;
  HostArray<float> matrix_;  // a rotation, or what the next one is made of
  Dense products_;
  Resources resources_;
};

}  // namespace

Dense optimized_rotation(const TrainingRows& rows, const OpqShape& shape, uint64_t seed, const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  const PrincipalAxes found = principal_axes(rows, quiet);
  const Turning turning(rows, found, shape, quiet);
  ProgressMeter meter("OPQ", shape.rounds, resources);
  Dense rotation = dealt_axes(found, shape, quiet);
  SubCodebooks codebooks = turning.make_codebooks();
  const double error = turning.start(rotation, codebooks, seed);
  if (shape.out >= rows.cols()) {
    Dense columns = spread_columns(rows.cols(), shape, quiet);
    SubCodebooks others = turning.make_codebooks();
    if (turning.start(columns, others, seed) < error) {
      rotation = std::move(columns);
      codebooks = std::move(others);
    }
  }
  for (int64_t round = 0; round < shape.rounds; ++round) {
    rotation = turning.next(rotation, codebooks);
    meter.add(1);
    meter.poll();
  }
  meter.finish();
  return rotation;
}

}  // namespace kith
