#include "transform/opq.hpp"

#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "transform/random_rotation.hpp"
#include "transform/rotation_steps.hpp"
#include "transform/sub_codebooks.hpp"
#include "transform/training_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kFirstSteps = 8;  // of the codewords, before the rotation turns

// Assigns principal axes to parts: the next axis goes to the part with the smallest product of variances that has room.
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

// The identity, with the columns spread evenly over the parts: data whose neighbouring columns belong together
// (histograms) has the best parts already.
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

// Codewords for a first rotation; returns the error of the codes.
double start(RotationSteps& steps, const Dense& rotation, uint64_t seed) {
  steps.set_rotation(rotation);
  steps.turn();
  steps.start_codewords(seed);
  for (int64_t step = 0; step < kFirstSteps; ++step) {
    steps.assign();
    steps.move_codewords();
  }
  steps.assign();
  return steps.code_error();
}

// Chooses the better of two first rotations, with its codewords; if lists follow, always the principal axes.
void choose_start(RotationSteps& steps, const PrincipalAxes& found, const OpqShape& shape, uint64_t seed,
                  const Resources& resources) {
  const Dense axes = dealt_axes(found, shape, resources);
  const double error = start(steps, axes, seed);
  if (shape.for_lists || shape.out < axes.cols()) return;
  const HostArray<float> codewords(shape.out * kMostSubCodewords, "codewords", resources);
  steps.get_codewords(codewords.data());
  if (start(steps, spread_columns(axes.cols(), shape, resources), seed) < error) return;
  steps.set_rotation(axes);
  steps.set_codewords(codewords.data());
}

// Makes the rotation orthonormal to the last digits of float64, by further steps of the same iteration.
Dense polished_rotation(RotationSteps& steps, int64_t in, const OpqShape& shape, const Resources& resources) {
  constexpr int kMostSteps = 6;
  constexpr double kClose = 1e-14;
  const bool tall = shape.out > in;
  Dense rotation(shape.out, in, "a rotation", resources);
  {
    const HostArray<float> values(shape.out * in, "a rotation", resources);
    steps.get_rotation(values.data());
    std::copy(values.begin(), values.end(), rotation.row(0));
  }
  const int64_t side = std::min(in, shape.out);
  const Dense squares(side, side, "a rotation", resources);
  Dense next(shape.out, in, "a rotation", resources);
  for (int step = 0; step < kMostSteps; ++step) {
    const DenseView<const double> x = tall ? rotation.read().transposed() : rotation.read();
    multiply(x, x.transposed(), squares.view(), {.symmetric = true}, resources);
    double departs = 0;
    for (int64_t i = 0; i < side; ++i) {
      for (int64_t j = 0; j < side; ++j) {
        departs = std::max(departs, std::abs(squares(i, j) - (i == j ? 1.0 : 0.0)));
        squares(i, j) = (i == j ? 1.5 : 0.0) - 0.5 * squares(i, j);
      }
    }
    if (departs <= kClose) break;
    if (tall) {
      multiply(rotation.read(), squares.read(), next.view(), {}, resources);
    } else {
      multiply(squares.read(), rotation.read(), next.view(), {}, resources);
    }
    std::swap(rotation, next);
  }
  return rotation;
}

Footprint polished_rotation_footprint(int64_t in, const OpqShape& shape, const Resources& resources) {
  const int64_t side = std::min(in, shape.out);
  return array_footprint<double>(shape.out, in)
      .times(2)
      .beside(array_footprint<double>(side, side))
      .beside(product_footprint<double>(side, side, std::max(in, shape.out), resources)
                  .then(product_footprint<double>(shape.out, in, side, resources)));
}

Device rotation_device(const TrainingRows& rows, const RotationShape& shape, int64_t rounds,
                       const Resources& resources) {
  const auto values = static_cast<double>(shape.rows * shape.out);
  const auto each = static_cast<double>(2 * shape.in + kMostSubCodewords);
  return training_device(
      rows,
      {"training a rotation",
       [&] { return fmt::format("a rotation of {} x {} vectors to {} columns", rows.rows(), rows.cols(), shape.out); }},
      {{CostUnit::f32_product, 2.0 * static_cast<double>(rounds) * values * each},
       {CostUnit::copied_byte, 4.0 * static_cast<double>(shape.rows * shape.in)}},
      [&](int device, const Resources& counting) { (void)make_rotation_steps_cuda(shape, device, counting); },
      resources);
}

}  // namespace

Dense optimized_rotation(const TrainingRows& rows, const OpqShape& shape, uint64_t seed, const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  const RotationShape all{rows.rows(), rows.cols(), shape.out, shape.parts};
  const Device device = rotation_device(rows, all, shape.rounds, quiet);
  const std::unique_ptr<RotationSteps> steps = dispatch(
      device, [&] { return make_rotation_steps_cpu(all, quiet); },
      [&](int index) { return make_rotation_steps_cuda(all, index, quiet); });
  ProgressMeter meter("OPQ", shape.rounds, resources);
  choose_start(*steps, steps->load(rows), shape, seed, quiet);
  for (int64_t round = 0; round < shape.rounds; ++round) {
    steps->turn();
    steps->assign();
    steps->move_codewords();
    steps->multiply_decoded();
    take_nearest_rotation(*steps);
    meter.add(1);
    meter.poll();
  }
  meter.finish();
  return polished_rotation(*steps, rows.cols(), shape, quiet);
}

Footprint optimized_rotation_footprint(const TrainingRowsShape& rows, const OpqShape& shape,
                                       const Resources& resources) {
  const int64_t in = rows.cols;
  const int64_t side = std::min(in, shape.out);
  const Footprint rotation = array_footprint<double>(shape.out, in);
  const Footprint axes = array_footprint<double>(in, in);
  const Footprint steps = counted(resources, [&](const Resources& counting) {
    (void)make_rotation_steps_cpu({rows.rows, in, shape.out, shape.parts}, counting);
  });
  const Footprint products = product_footprint<float>(rows.rows, shape.out, in, resources)
                                 .then(product_footprint<float>(shape.out, in, rows.rows, resources, kDecodedTerms))
                                 .then(product_footprint<float>(side, side, std::max(in, shape.out), resources))
                                 .then(product_footprint<float>(side, std::max(in, shape.out), side, resources));
  const Footprint start = axes.beside(rotation.times(2)).beside(array_footprint<float>(shape.out, kMostSubCodewords));
  const Footprint end = polished_rotation_footprint(in, shape, resources).beside(array_footprint<float>(shape.out, in));
  const Footprint loading =
      principal_axes_footprint(rows, resources).then(axes.beside(rows.fetching(rows.rows, resources)));
  return steps.beside(loading.then(start.beside(products)).then(end));
}

}  // namespace kith
