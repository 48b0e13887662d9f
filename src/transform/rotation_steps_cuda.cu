// The steps of rotation_steps.hpp on a GPU. All that they work with stays there; the host sees a rotation at the end,
// and how far the nearest one is from being one in each round.
#include "core/divide.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/launch.hpp"
#include "kernels/dense/dense_cuda.hpp"
#include "transform/rotation_steps.hpp"
#include "transform/rows_on_device.hpp"
#include "transform/sub_codebooks.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWords = static_cast<int>(kMostSubCodewords);
constexpr int kRowThreads = 32;     // of a block that adds up rows: these are few
static_assert(kThreads == kWords);  // a thread for each codeword of a part

// Turned rows and the codewords of their parts.
struct CodedRows {
  float* values = nullptr;  // rows x cols
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t parts = 0;
  int64_t part_cols = 0;
  int words = 0;               // of a part
  float* codewords = nullptr;  // parts x kMostSubCodewords x part_cols
  uint8_t* codes = nullptr;    // parts x rows
  double* sums = nullptr;      // as the codewords lie
  uint32_t* sizes = nullptr;   // parts x kMostSubCodewords

  __device__ float* book(int64_t part) const { return codewords + part * kWords * part_cols; }
};

__global__ void __launch_bounds__(kThreads) take_rows_kernel(CodedRows coded, const uint32_t* drawn) {
  const int64_t part = blockIdx.x;
  for (int64_t at = threadIdx.x; at < coded.words * coded.part_cols; at += kThreads) {
    const int64_t row = drawn[part * coded.words + at / coded.part_cols];
    coded.book(part)[at] = coded.values[row * coded.cols + part * coded.part_cols + at % coded.part_cols];
  }
}

// |c|^2 / 2, as set_groups() has it.
__device__ float half_squared(const float* word, int64_t cols) {
  double squared = 0;
  for (int64_t c = 0; c < cols; ++c) squared += static_cast<double>(word[c]) * static_cast<double>(word[c]);
  return static_cast<float>(0.5 * squared);
}

// The first of the least |c|^2 / 2 - x c of part blockIdx.y, a thread for each row; up to kCols columns. Four codewords
// lie side by side in shared memory.
template <int kCols>
__global__ void __launch_bounds__(kThreads) least_kernel(CodedRows coded) {
  extern __shared__ float4 groups[];
  const int64_t part = blockIdx.y;
  const int count = (coded.words + 3) / 4;
  auto* const table = reinterpret_cast<float*>(groups);
  for (int w = static_cast<int>(threadIdx.x); w < count * 4; w += kThreads) {
    const float* const word = coded.book(part) + w * coded.part_cols;
    float* const group = table + w / 4 * 4 * (kCols + 1) + w % 4;
    const bool exists = w < coded.words;
    group[0] = exists ? half_squared(word, coded.part_cols) : HUGE_VALF;
    for (int c = 0; c < kCols; ++c) group[(c + 1) * 4] = exists && c < coded.part_cols ? -word[c] : 0.0f;
  }
  __syncthreads();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= coded.rows) return;
  const float* const from = coded.values + row * coded.cols + part * coded.part_cols;
  float x[kCols];
#pragma unroll
  for (int c = 0; c < kCols; ++c) x[c] = c < coded.part_cols ? from[c] : 0.0f;
  float least = HUGE_VALF;
  int nearest = 0;
  for (int g = 0; g < count; ++g) {
    float4 values = groups[g * (kCols + 1)];
#pragma unroll
    for (int c = 0; c < kCols; ++c) {
      const float4 factors = groups[g * (kCols + 1) + c + 1];
      values.x = fmaf(x[c], factors.x, values.x);
      values.y = fmaf(x[c], factors.y, values.y);
      values.z = fmaf(x[c], factors.z, values.z);
      values.w = fmaf(x[c], factors.w, values.w);
    }
    const float four[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (four[j] < least) {
        least = four[j];
        nearest = g * 4 + j;
      }
    }
  }
  coded.codes[part * coded.rows + row] = static_cast<uint8_t>(nearest);
}

// The same for any number of columns, which are read again for every codeword.
__global__ void __launch_bounds__(kThreads) least_wide_kernel(CodedRows coded) {
  __shared__ float halves[kWords];
  const int64_t part = blockIdx.y;
  const float* const book = coded.book(part);
  const auto own = static_cast<int>(threadIdx.x);
  if (own < coded.words) halves[own] = half_squared(book + own * coded.part_cols, coded.part_cols);
  __syncthreads();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= coded.rows) return;
  const float* const from = coded.values + row * coded.cols + part * coded.part_cols;
  float least = HUGE_VALF;
  int nearest = 0;
  constexpr int kTogether = 8;
  for (int first = 0; first < coded.words; first += kTogether) {
    float values[kTogether];
#pragma unroll
    for (int j = 0; j < kTogether; ++j) values[j] = halves[min(first + j, coded.words - 1)];
    for (int64_t c = 0; c < coded.part_cols; ++c) {
      const float x = from[c];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        values[j] = fmaf(x, -book[min(first + j, coded.words - 1) * coded.part_cols + c], values[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {  // the last one again is no nearer
      if (values[j] < least) {
        least = values[j];
        nearest = first + j;
      }
    }
  }
  coded.codes[part * coded.rows + row] = static_cast<uint8_t>(nearest);
}

// Sums are exact, and so have no order.
__global__ void __launch_bounds__(kThreads) add_rows_kernel(CodedRows coded) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= coded.rows * coded.cols) return;
  const int64_t row = at / coded.cols;
  const int64_t column = at % coded.cols;
  const int64_t part = column / coded.part_cols;
  const int64_t word = part * kWords + coded.codes[part * coded.rows + row];
  atomicAdd(coded.sums + word * coded.part_cols + column % coded.part_cols, rounded_to_add(coded.values[at]));
  if (column % coded.part_cols == 0) atomicAdd(coded.sizes + word, 1u);
}

// The first of the largest sizes, for all threads of a block.
__device__ int largest_of(const uint32_t* sizes, int count, uint64_t* best) {
  const auto own = static_cast<int>(threadIdx.x);
  if (own == 0) *best = 0;
  __syncthreads();
  if (own < count) {
    const uint64_t packed = static_cast<uint64_t>(sizes[own]) << 32 | static_cast<uint32_t>(kWords - own);
    atomicMax(reinterpret_cast<unsigned long long*>(best), static_cast<unsigned long long>(packed));
  }
  __syncthreads();
  const int found = kWords - static_cast<int>(*best & 0xFFFFFFFFu);
  __syncthreads();
  return found;
}

// A block for each part: as SubCodebooks::move().
__global__ void __launch_bounds__(kThreads) move_kernel(CodedRows coded) {
  __shared__ uint32_t sizes[kWords];
  __shared__ uint64_t best;
  const int64_t part = blockIdx.x;
  const int64_t cols = coded.part_cols;
  float* const book = coded.book(part);
  const double* const sums = coded.sums + part * kWords * cols;
  sizes[threadIdx.x] = coded.sizes[part * kWords + threadIdx.x];
  __syncthreads();
  for (int64_t at = threadIdx.x; at < coded.words * cols; at += kThreads) {
    const uint32_t size = sizes[at / cols];
    if (size > 0) book[at] = static_cast<float>(sums[at] / static_cast<double>(size));
  }
  __syncthreads();
  for (int k = 0; k < coded.words; ++k) {
    if (sizes[k] > 0) continue;
    const int largest = largest_of(sizes, coded.words, &best);
    for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
      const float step = (c % 2 == 0 ? 1.0f : -1.0f) / 1024;
      const float value = book[largest * cols + c];
      book[k * cols + c] = value * (1 + step);
      book[largest * cols + c] = value * (1 - step);
    }
    if (threadIdx.x == 0) {
      sizes[k] = sizes[largest] / 2;
      sizes[largest] -= sizes[k];
    }
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads) decode_kernel(CodedRows coded) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= coded.rows * coded.cols) return;
  const int64_t column = at % coded.cols;
  const int64_t part = column / coded.part_cols;
  const int64_t code = coded.codes[part * coded.rows + at / coded.cols];
  coded.values[at] = coded.book(part)[code * coded.part_cols + column % coded.part_cols];
}

// A thread for each row.
__global__ void __launch_bounds__(kThreads) error_kernel(CodedRows coded, double* errors) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= coded.rows) return;
  double sum = 0;
  for (int64_t part = 0; part < coded.parts; ++part) {
    const float* const values = coded.values + row * coded.cols + part * coded.part_cols;
    const float* const word = coded.book(part) + coded.codes[part * coded.rows + row] * coded.part_cols;
    for (int64_t c = 0; c < coded.part_cols; ++c) {
      const double difference = static_cast<double>(values[c]) - static_cast<double>(word[c]);
      sum += difference * difference;
    }
  }
  errors[row] = sum;
}

// --- the nearest rotation

// A thread for each row of a symmetric matrix, of which it reads the column: the sum of absolute values, or of squared
// departures from the identity.
template <bool kDepartures>
__global__ void __launch_bounds__(kRowThreads) row_sums_kernel(DenseView<const float> squares, double* sums) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kRowThreads + threadIdx.x;
  if (i >= squares.rows) return;
  double sum = 0;
#pragma unroll 8
  for (int64_t j = 0; j < squares.cols; ++j) {
    const float value = squares(j, i);
    sum += kDepartures ? departure_squared(value, i == j) : static_cast<double>(fabsf(value));
  }
  sums[i] = sum;
}

__global__ void __launch_bounds__(kThreads)
    begin_kernel(DenseView<const float> m, DenseView<const float> before, float scale, float share, float* out) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= m.rows * m.cols) return;
  const int64_t i = at / m.cols;
  const int64_t j = at % m.cols;
  out[at] = scale * m(i, j) + share * before(i, j);
}

__global__ void __launch_bounds__(kThreads)
    factors_kernel(DenseView<const float> squares, float own, float squared, float* out) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= squares.rows * squares.cols) return;
  const bool diagonal = at / squares.cols == at % squares.cols;
  out[at] = squared * squares.data[at] + (diagonal ? own : 0.0f);
}

__global__ void __launch_bounds__(kThreads) copy_kernel(DenseView<const float> from, float* out) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < from.rows * from.cols) out[at] = from(at / from.cols, at % from.cols);
}

class RotationStepsCuda final : public RotationSteps {
 public:
  RotationStepsCuda(const RotationShape& shape, int device, const Resources& resources)
      : shape_(shape),
        resources_(resources),
        guard_(device),
        context_(std::make_shared<const DeviceContext>(device, resources.options().stream)),
        rows_(shape.rows, shape.in, context_, resources),
        turned_(shape.rows * shape.out, "rotated training rows", context_, resources),
        rotation_(rotation_values(), "a rotation", context_, resources),
        products_(rotation_values(), "a rotation", context_, resources),
        next_(rotation_values(), "a rotation", context_, resources),
        squares_(side() * side(), "a rotation", context_, resources),
        factors_(side() * side(), "a rotation", context_, resources),
        parts_(part_values(), "a rotation", context_, resources),
        codewords_(shape.out * kMostSubCodewords, "codewords", context_, resources),
        codes_(shape.rows * shape.parts, "codes", context_, resources),
        sums_(shape.out * kMostSubCodewords, "codewords", context_, resources),
        sizes_(shape.parts * kMostSubCodewords, "codewords", context_, resources),
        errors_(shape.rows, "errors of codes", context_, resources),
        row_sums_(side(), "a rotation", context_, resources),
        host_errors_(shape.rows, "errors of codes", resources) {}

  PrincipalAxes load(const TrainingRows& rows) override {
    PrincipalAxes found = rows_.load(rows, resources_);
    rows_.multiply_by(scale_of_variance(found.variances.front()));
    return found;
  }

  void set_rotation(const Dense& rotation) override {
    const HostArray<float> values(rotation_values(), "a rotation", resources_);
    std::transform(rotation.row(0), rotation.row(0) + rotation_values(), values.begin(),
                   [](double value) { return static_cast<float>(value); });
    context_->copy_values(rotation_.data(), values.data(), rotation_values());
    context_->synchronize();
  }
  void get_rotation(float* rotation) override { get(rotation, rotation_); }

  void turn() override { multiply(rows_.view(), matrix(rotation_).transposed(), turned(), {}); }

  void start_codewords(uint64_t seed) override {
    const CodedRows coded = coded_rows();
    const std::vector<uint32_t> drawn = drawn_sub_codewords(shape_.rows, coded.parts, coded.words, seed);
    context_->copy_values(sizes_.data(), drawn.data(), static_cast<int64_t>(drawn.size()));
    launch(take_rows_kernel, Grid::of(coded.parts, kThreads), stream(), coded, sizes_.data());
    context_->synchronize();
  }

  void assign() override {
    const CodedRows coded = coded_rows();
    const int64_t cols = coded.part_cols;
    if (cols <= 1) return assign_in<1>(coded);
    if (cols <= 2) return assign_in<2>(coded);
    if (cols <= 4) return assign_in<4>(coded);
    if (cols <= 8) return assign_in<8>(coded);
    if (cols <= 16) return assign_in<16>(coded);
    if (cols <= 32) return assign_in<32>(coded);
    launch(least_wide_kernel, grid_of_codes(coded), stream(), coded);
  }

  void move_codewords() override {
    const CodedRows coded = coded_rows();
    context_->fill(sums_.data(), 0, sums_.size());
    context_->fill(sizes_.data(), 0, sizes_.size());
    launch(add_rows_kernel, Grid::over(coded.rows * coded.cols, kThreads), stream(), coded);
    launch(move_kernel, Grid::of(coded.parts, kThreads), stream(), coded);
  }

  double code_error() override {
    launch(error_kernel, Grid::over(shape_.rows, kThreads), stream(), coded_rows(), errors_.data());
    get(host_errors_.data(), errors_);
    double total = 0;
    for (const double error : host_errors_) total += error;
    return total;
  }

  void get_codewords(float* codewords) override { get(codewords, codewords_); }
  void set_codewords(const float* codewords) override {
    context_->copy_values(codewords_.data(), codewords, codewords_.size());
    context_->synchronize();
  }

  void multiply_decoded() override {
    const CodedRows coded = coded_rows();
    launch(decode_kernel, Grid::over(coded.rows * coded.cols, kThreads), stream(), coded);
    multiply(DenseView<const float>(turned()).transposed(), rows_.view(),
             {products_.data(), shape_.out, shape_.in, shape_.in, 1}, kDecodedTerms);
  }

  void begin_nearest(float share) override {
    const DenseView<const float> m = wide(products_);
    multiply(m, m.transposed(), squares(), kSymmetric);
    const std::vector<double> sums = row_sums<false>();
    const double largest = *std::max_element(sums.begin(), sums.end());
    launch(begin_kernel, Grid::over(rotation_values(), kThreads), stream(), m, wide(rotation_), scale_of_bound(largest),
           share, next_.data());
    std::swap(next_, products_);
  }

  void square_nearest() override {
    const DenseView<const float> x = nearest();
    multiply(x, x.transposed(), squares(), kSymmetric);
  }

  double departure() override {
    double total = 0;
    for (const double sum : row_sums<true>()) total += sum;
    return total;
  }

  void refine_nearest(float own, float squared) override {
    launch(factors_kernel, Grid::over(squares_.size(), kThreads), stream(), squares(), own, squared, factors_.data());
    const DenseView<float> x = nearest();
    multiply(DenseView<const float>{factors_.data(), side(), side(), side(), 1}, x,
             {next_.data(), x.rows, x.cols, x.cols, 1}, {});
    std::swap(next_, products_);
  }

  void take_nearest() override {
    const DenseView<const float> x = nearest();
    launch(copy_kernel, Grid::over(rotation_values(), kThreads), stream(), is_tall() ? x.transposed() : x,
           rotation_.data());
  }

 private:
  static constexpr ProductTerms kSymmetric{.symmetric = true};

  cudaStream_t stream() const { return context_->stream(); }
  bool is_tall() const { return shape_.out > shape_.in; }
  int64_t side() const { return shape_.small_side(); }
  int64_t rotation_values() const { return shape_.out * shape_.in; }
  DenseView<float> turned() const { return {turned_.data(), shape_.rows, shape_.out, shape_.out, 1}; }
  DenseView<const float> matrix(const DeviceArray<float>& values) const {
    return {values.data(), shape_.out, shape_.in, shape_.in, 1};
  }
  // With no more rows than columns.
  DenseView<const float> wide(const DeviceArray<float>& values) const {
    return is_tall() ? matrix(values).transposed() : matrix(values);
  }
  DenseView<float> squares() const { return {squares_.data(), side(), side(), side(), 1}; }
  // X, in the place of M, wide.
  DenseView<float> nearest() const {
    return {products_.data(), side(), rotation_values() / side(), rotation_values() / side(), 1};
  }

  // What the parts of any of the products take.
  int64_t part_values() const {
    const int64_t large = rotation_values() / side();
    return std::max({product_part_values(shape_.rows, shape_.out, shape_.in, {}),
                     product_part_values(shape_.out, shape_.in, shape_.rows, kDecodedTerms),
                     product_part_values(side(), side(), large, kSymmetric),
                     product_part_values(side(), large, side(), {})});
  }
  void multiply(DenseView<const float> a, DenseView<const float> b, DenseView<float> c,
                const ProductTerms& terms) const {
    launch_multiply(a, b, c, terms, parts_.data(), stream());
  }

  CodedRows coded_rows() const {
    CodedRows coded;
    coded.values = turned_.data();
    coded.rows = shape_.rows;
    coded.cols = shape_.out;
    coded.parts = shape_.parts;
    coded.part_cols = coded.cols / coded.parts;
    coded.words = static_cast<int>(std::min(coded.rows, kMostSubCodewords));
    coded.codewords = codewords_.data();
    coded.codes = codes_.data();
    coded.sums = sums_.data();
    coded.sizes = sizes_.data();
    return coded;
  }
  static Grid grid_of_codes(const CodedRows& coded) {
    return Grid::of(divide_up(coded.rows, int64_t{kThreads}), coded.parts, kThreads);
  }
  template <int kCols>
  void assign_in(const CodedRows& coded) const {
    launch(least_kernel<kCols>, grid_of_codes(coded).with_shared(array_bytes<float>(kMostSubCodewords * (kCols + 1))),
           stream(), coded);
  }

  template <bool kDepartures>
  std::vector<double> row_sums() const {
    launch(row_sums_kernel<kDepartures>, Grid::over(side(), kRowThreads), stream(), squares(), row_sums_.data());
    std::vector<double> sums(static_cast<size_t>(side()));
    get(sums.data(), row_sums_);
    return sums;
  }

  template <typename T>
  void get(T* values, const DeviceArray<T>& from) const {
    context_->copy_values(values, from.data(), from.size());
    context_->synchronize();
  }

  const RotationShape shape_;
  const Resources resources_;
  const DeviceGuard guard_;
  const std::shared_ptr<const DeviceContext> context_;
  RowsOnDevice rows_;
  DeviceArray<float> turned_;
  DeviceArray<float> rotation_;
  DeviceArray<float> products_;  // M, then X
  DeviceArray<float> next_;
  DeviceArray<float> squares_;
  DeviceArray<float> factors_;
  DeviceArray<float> parts_;  // of a product's sums
  DeviceArray<float> codewords_;
  DeviceArray<uint8_t> codes_;
  DeviceArray<double> sums_;
  DeviceArray<uint32_t> sizes_;  // of codewords; rows drawn, at first
  DeviceArray<double> errors_;
  DeviceArray<double> row_sums_;  // of X X'
  HostArray<double> host_errors_;
};

}  // namespace

std::unique_ptr<RotationSteps> make_rotation_steps_cuda(const RotationShape& shape, int device,
                                                        const Resources& resources) {
  return std::make_unique<RotationStepsCuda>(shape, device, resources);
}

}  // namespace kith
