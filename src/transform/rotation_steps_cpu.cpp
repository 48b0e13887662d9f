#include "core/parallel_for.hpp"
#include "rows/row_blocks.hpp"
#include "transform/rotation_steps.hpp"
#include "transform/sub_codebooks.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kith {
namespace {

class RotationStepsCpu final : public RotationSteps {
 public:
  RotationStepsCpu(const RotationShape& shape, const Resources& resources)
      : shape_(shape),
        resources_(resources),
        values_(shape.rows * shape.in, "training rows", resources),
        turned_(shape.rows * shape.out, "rotated training rows", resources),
        rotation_(values_of_rotation(), "a rotation", resources),
        products_(values_of_rotation(), "a rotation", resources),
        next_(values_of_rotation(), "a rotation", resources),
        squares_(shape.small_side() * shape.small_side(), "a rotation", resources),
        factors_(shape.small_side() * shape.small_side(), "a rotation", resources),
        codebooks_(shape.rows, shape.out, shape.parts, resources) {}

  PrincipalAxes load(const TrainingRows& rows) override {
    PrincipalAxes found = principal_axes(rows, resources_);
    rows.fetch(0, rows.rows(), values_.data());
    const double scale = scale_of_variance(found.variances.front());
    const int64_t cols = shape_.in;
    for_row_blocks("rows", rows.rows(), resources_, [&](int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        float* const row = values_.data() + i * cols;
        for (int64_t c = 0; c < cols; ++c) {
          row[c] = static_cast<float>(static_cast<double>(row[c] - found.mean[static_cast<size_t>(c)]) * scale);
        }
      }
    });
    return found;
  }

  void set_rotation(const Dense& rotation) override {
    std::transform(rotation.row(0), rotation.row(0) + values_of_rotation(), rotation_.begin(),
                   [](double value) { return static_cast<float>(value); });
  }
  void get_rotation(float* rotation) override { std::copy(rotation_.begin(), rotation_.end(), rotation); }

  void turn() override { multiply(rows(), matrix(rotation_).transposed(), turned(), {}, resources_); }

  void start_codewords(uint64_t seed) override { codebooks_.start(turned(), seed); }
  void assign() override { codebooks_.assign(turned(), resources_); }
  void move_codewords() override { codebooks_.move(turned(), resources_); }
  double code_error() override { return codebooks_.error(turned(), resources_); }
  void get_codewords(float* codewords) override {
    std::copy(codebooks_.codewords().begin(), codebooks_.codewords().end(), codewords);
  }
  void set_codewords(const float* codewords) override {
    std::copy_n(codewords, codebooks_.codewords().size(), codebooks_.codewords().data());
  }
  void multiply_decoded() override {
    codebooks_.decode(turned(), resources_);
    multiply(DenseView<const float>(turned()).transposed(), rows(),
             {products_.data(), shape_.out, shape_.in, shape_.in, 1}, kDecodedTerms, resources_);
  }

  void begin_nearest(float share) override {
    const DenseView<const float> m = wide(products_);
    multiply(m, m.transposed(), squares(), {.symmetric = true}, resources_);
    double largest = 0;
    for (int64_t i = 0; i < m.rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < m.rows; ++j) sum += static_cast<double>(std::abs(squares()(i, j)));
      largest = std::max(largest, sum);
    }
    const float scale = scale_of_bound(largest);
    const DenseView<const float> before = wide(rotation_);
    const DenseView<float> x = nearest();
    for (int64_t i = 0; i < x.rows; ++i) {
      for (int64_t j = 0; j < x.cols; ++j) next_[i * x.cols + j] = scale * m(i, j) + share * before(i, j);
    }
    std::swap(next_, products_);
  }

  void square_nearest() override {
    const DenseView<const float> x = nearest();
    multiply(x, x.transposed(), squares(), {.symmetric = true}, resources_);
  }

  double departure() override {
    double total = 0;
    for (int64_t i = 0; i < squares().rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < squares().cols; ++j) sum += departure_squared(squares()(i, j), i == j);
      total += sum;
    }
    return total;
  }

  void refine_nearest(float own, float squared) override {
    const int64_t side = shape_.small_side();
    const DenseView<float> factors{factors_.data(), side, side, side, 1};
    for (int64_t i = 0; i < side; ++i) {
      for (int64_t j = 0; j < side; ++j) factors(i, j) = squared * squares()(i, j) + (i == j ? own : 0.0f);
    }
    const DenseView<float> x = nearest();
    multiply(DenseView<const float>(factors), DenseView<const float>(x), {next_.data(), x.rows, x.cols, x.cols, 1}, {},
             resources_);
    std::swap(next_, products_);
  }

  void take_nearest() override {
    const DenseView<float> x = nearest();
    const bool tall = shape_.out > shape_.in;
    for (int64_t i = 0; i < shape_.out; ++i) {
      for (int64_t j = 0; j < shape_.in; ++j) rotation_[i * shape_.in + j] = tall ? x(j, i) : x(i, j);
    }
  }

 private:
  int64_t values_of_rotation() const { return shape_.out * shape_.in; }
  DenseView<const float> rows() const { return {values_.data(), shape_.rows, shape_.in, shape_.in, 1}; }
  DenseView<float> turned() const { return {turned_.data(), shape_.rows, shape_.out, shape_.out, 1}; }
  DenseView<const float> matrix(const HostArray<float>& values) const {
    return {values.data(), shape_.out, shape_.in, shape_.in, 1};
  }
  // With no more rows than columns.
  DenseView<const float> wide(const HostArray<float>& values) const {
    return shape_.out > shape_.in ? matrix(values).transposed() : matrix(values);
  }
  DenseView<float> squares() const {
    const int64_t side = shape_.small_side();
    return {squares_.data(), side, side, side, 1};
  }
  // X, in the place of M, wide.
  DenseView<float> nearest() const {
    const int64_t side = shape_.small_side();
    return {products_.data(), side, values_of_rotation() / side, values_of_rotation() / side, 1};
  }

  const RotationShape shape_;
  const Resources resources_;
  HostArray<float> values_;
  HostArray<float> turned_;
  HostArray<float> rotation_;
  HostArray<float> products_;  // M, then X
  HostArray<float> next_;
  HostArray<float> squares_;
  HostArray<float> factors_;
  SubCodebooks codebooks_;
};

}  // namespace

std::unique_ptr<RotationSteps> make_rotation_steps_cpu(const RotationShape& shape, const Resources& resources) {
  return std::make_unique<RotationStepsCpu>(shape, resources);
}

}  // namespace kith
