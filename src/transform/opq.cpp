#include "transform/opq.hpp"

#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "kernels/assign/codewords_cpu.hpp"
#include "kernels/dense/factorisations.hpp"
#include "rows/row_blocks.hpp"
#include "transform/random_rotation.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kBlockRows = 1024;
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
  Turning(int64_t rows, int64_t in, const OpqShape& shape, const Resources& resources)
      : in_(in),
        shape_(shape),
        values_(rows * in_, "training rows", resources),
        turned_(rows * shape.out, "rotated training rows", resources),
        matrix_(shape.out * in_, "a rotation", resources),
        products_(shape.out, in_, "a rotation", resources),
        resources_(resources) {}

  void load(const TrainingRows& rows, const PrincipalAxes& found) {
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

SubCodebooks::SubCodebooks(int64_t rows, int64_t cols, int64_t parts, const Resources& resources)
    : rows_(rows),
      parts_(parts),
      part_cols_(cols / parts),
      count_(std::min(rows, kMostCodewords)),
      codewords_(cols * kMostCodewords, "codewords", resources),
      codes_(rows * parts, "codes", resources),
      groups_(parts * group_floats(count_, part_cols_), "codewords", resources),
      scratch_(resources.threads() * NearestCodeword::scratch_floats(part_cols_), "a block of rows", resources) {}

void SubCodebooks::start(DenseView<const float> rows, uint64_t seed) {
  for (int64_t part = 0; part < parts_; ++part) {
    const CounterRng rng(seed, static_cast<uint64_t>(part));
    for (int64_t k = 0; k < count_; ++k) {
      // A row of each of so many stretches.
      const int64_t from = k * rows_ / count_;
      const int64_t stretch = (k + 1) * rows_ / count_ - from;
      const int64_t row = from + rng.below(static_cast<uint64_t>(k), static_cast<uint32_t>(stretch));
      std::copy_n(rows.row(row) + part * part_cols_, part_cols_, codebook(part) + k * part_cols_);
    }
  }
}

void SubCodebooks::assign(DenseView<const float> rows, const Resources& resources) {
  const int64_t each = group_floats(count_, part_cols_);
  for (int64_t part = 0; part < parts_; ++part) {
    set_groups(codebook(part), count_, part_cols_, groups_.data() + part * each);
  }
  const int64_t scratch_floats = NearestCodeword::scratch_floats(part_cols_);
  const auto assign_some = [&](int64_t first, int64_t end, int slot) {
    for (int64_t part = 0; part < parts_; ++part) {
      least_codewords_cpu(groups_.data() + part * each, count_, part_cols_, rows.row(first) + part * part_cols_,
                          rows.row_step, end - first, codes(part) + first, scratch_.data() + slot * scratch_floats);
    }
  };
  for_row_blocks("codes", rows_, resources, assign_some, kBlockRows);
}

double SubCodebooks::error(DenseView<const float> rows) const {
  double sum = 0;
  for (int64_t i = 0; i < rows_; ++i) {
    for (int64_t part = 0; part < parts_; ++part) {
      const float* const values = rows.row(i) + part * part_cols_;
      const float* const codeword = codebook(part) + codes(part)[i] * part_cols_;
      for (int64_t c = 0; c < part_cols_; ++c) {
        const double difference = static_cast<double>(values[c]) - static_cast<double>(codeword[c]);
        sum += difference * difference;
      }
    }
  }
  return sum;
}

void SubCodebooks::move(DenseView<const float> rows, const Resources& resources) {
  ProgressMeter meter("codewords", parts_, resources);
  parallel_for(parts_, meter, resources, [&](int64_t part, int) {
    std::vector<double> sums(static_cast<size_t>(count_ * part_cols_));
    std::vector<double> sizes(static_cast<size_t>(count_));
    const MatrixView values(rows.row(0) + part * part_cols_, DType::f32, {rows_, part_cols_, rows.row_step});
    add_rows_cpu(values, codes(part), sums.data(), sizes.data());
    float* const book = codebook(part);
    for (int64_t k = 0; k < count_; ++k) {
      const double size = sizes[static_cast<size_t>(k)];
      for (int64_t c = 0; size > 0 && c < part_cols_; ++c) {
        book[k * part_cols_ + c] = static_cast<float>(sums[static_cast<size_t>(k * part_cols_ + c)] / size);
      }
    }
    for (int64_t k = 0; k < count_; ++k) {
      double& size = sizes[static_cast<size_t>(k)];
      if (size > 0) continue;
      const auto most = std::max_element(sizes.begin(), sizes.end());
      float* const largest = book + (most - sizes.begin()) * part_cols_;
      for (int64_t c = 0; c < part_cols_; ++c) {  // a little to either side
        const float step = (c % 2 == 0 ? 1.0f : -1.0f) / 1024;
        book[k * part_cols_ + c] = largest[c] * (1 + step);
        largest[c] *= 1 - step;
      }
      size = std::floor(*most / 2);
      *most -= size;
    }
  });
}

void SubCodebooks::decode(DenseView<float> rows, const Resources& resources) const {
  const auto decode_some = [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      for (int64_t part = 0; part < parts_; ++part) {
        std::copy_n(codebook(part) + codes(part)[i] * part_cols_, part_cols_, rows.row(i) + part * part_cols_);
      }
    }
  };
  for_row_blocks("decode", rows_, resources, decode_some, kBlockRows);
}

Dense optimized_rotation(const TrainingRows& rows, const OpqShape& shape, uint64_t seed, const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  const PrincipalAxes found = principal_axes(rows, quiet);
  Turning turning(rows.rows(), rows.cols(), shape, quiet);
  turning.load(rows, found);
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

Footprint optimized_rotation_footprint(const TrainingRowsShape& rows, const OpqShape& shape,
                                       const Resources& resources) {
  const int64_t in = rows.cols;
  const Footprint rotation = array_footprint<double>(shape.out, in);
  const Footprint codebooks = footprint_of<SubCodebooks>(resources, rows.rows, shape.out, shape.parts);
  const Footprint round = product_footprint<float>(rows.rows, shape.out, in, resources)
                              .then(product_footprint<float>(shape.out, in, rows.rows, resources))
                              .then(polar_factor_footprint(shape.out, in, resources));
  const Footprint turning =
      footprint_of<Turning>(resources, rows.rows, in, shape)
          .beside(array_footprint<double>(in, in))  // principal axes
          .beside(rows.fetching(rows.rows, resources).then(rotation.times(2).beside(codebooks.times(2)).beside(round)));
  return principal_axes_footprint(rows, resources).then(turning);
}

}  // namespace kith
