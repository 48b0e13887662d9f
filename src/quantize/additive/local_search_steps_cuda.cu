// Rows, codes and costs stay on the device in all rounds. After each update, codebooks are copied to the host, moved
// and rounded there, and copied back for the search.
#include "quantize/additive/local_search_steps_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/launch.hpp"
#include "cuda/warp.hpp"
#include "kernels/dense/cholesky_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__device__ int64_t word_of(const CodedRows& coded, int64_t row, int64_t book) {
  return (book << coded.bits) + coded.codes[row * coded.books + book];
}

// Counts how often codewords occur together, on and below the diagonal: integers, so the order does not matter.
__global__ void __launch_bounds__(kThreads) count_pairs_kernel(CodedRows coded, int64_t words, double* counts) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= coded.count) return;
  const auto lane = static_cast<int>(threadIdx.x % 32);
  for (int64_t k = 0; k < coded.books; ++k) {
    const int64_t at = word_of(coded, row, k) * words;
    for (int64_t l = lane; l <= k; l += 32) atomicAdd(counts + at + word_of(coded, row, l), 1.0);
  }
}

__global__ void __launch_bounds__(kThreads) add_diagonal_kernel(int64_t words, double lambda, double* counts) {
  const int64_t w = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (w < words) counts[w * words + w] += lambda;
}

// The sum of the rows with a codeword, for up to kThreads columns: the block scans the codes, and a thread adds up a
// column in the order of the rows. Sums are rows of the system: cols x words.
__global__ void __launch_bounds__(kThreads) sum_rows_kernel(CodedRows coded, int64_t words, double* sums) {
  __shared__ uint32_t found[kThreads];
  __shared__ int warp_counts[kWarps];
  const int64_t w = blockIdx.x;
  const int64_t book = w >> coded.bits;
  const auto code = static_cast<uint8_t>(w & ((int64_t{1} << coded.bits) - 1));
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const auto warp = static_cast<int>(threadIdx.x / 32);
  double sum = 0;
  for (int64_t first = 0; first < coded.count; first += kThreads) {
    const int64_t row = first + threadIdx.x;
    const bool has = row < coded.count && coded.codes[row * coded.books + book] == code;
    const unsigned having = __ballot_sync(kAllLanes, has);
    if (lane == 0) warp_counts[warp] = __popc(having);
    __syncthreads();
    int before = 0;
    int all = 0;
    for (int i = 0; i < kWarps; ++i) {
      before += i < warp ? warp_counts[i] : 0;
      all += warp_counts[i];
    }
    if (has) found[before + __popc(having & ((1u << lane) - 1))] = static_cast<uint32_t>(row);
    __syncthreads();
    if (column < coded.cols) {
#pragma unroll 4
      for (int i = 0; i < all; ++i) sum += static_cast<double>(coded.rows[int64_t{found[i]} * coded.cols + column]);
    }
    // The next round's counts are written before all have left this loop, its list only after the next barrier.
  }
  if (column < coded.cols) sums[column * words + w] = sum;
}

__global__ void __launch_bounds__(kThreads)
    read_codebooks_kernel(const double* sums, int64_t words, int64_t cols, float* codebooks) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < words * cols) codebooks[i] = static_cast<float>(sums[i % cols * words + i / cols]);
}

// The sum of `count` values, in a fixed order.
__global__ void __launch_bounds__(kThreads) sum_kernel(const float* values, int64_t count, double* sum) {
  __shared__ double sums[kThreads];
  double mine = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) mine += static_cast<double>(values[i]);
  sums[threadIdx.x] = mine;
  __syncthreads();
  for (int apart = kThreads / 2; apart > 0; apart /= 2) {
    if (static_cast<int>(threadIdx.x) < apart) sums[threadIdx.x] += sums[threadIdx.x + apart];
    __syncthreads();
  }
  if (threadIdx.x == 0) *sum = sums[0];
}

}  // namespace

int64_t codebook_system_values(const CodedRows& coded) {
  const int64_t words = coded.books << coded.bits;
  return words * (words + coded.cols);
}

void launch_update_codebooks(const CodedRows& coded, double lambda, double* system, float* codebooks,
                             cudaStream_t stream) {
  const int64_t words = coded.books << coded.bits;
  double* const sums = system + words * words;
  fill_bytes(system, 0, array_bytes<double>(words * words), stream);
  launch(count_pairs_kernel, Grid::of(divide_up(coded.count, kWarps), kThreads), stream, coded, words, system);
  launch(add_diagonal_kernel, Grid::over(words, kThreads), stream, words, lambda, system);
  const dim3 columns(static_cast<unsigned>(words), static_cast<unsigned>(divide_up(coded.cols, kThreads)));
  launch(sum_rows_kernel, {columns, dim3(kThreads)}, stream, coded, words, sums);
  launch_solve_positive_definite({system, words, coded.cols}, lambda, stream);
  launch(read_codebooks_kernel, Grid::over(words * coded.cols, kThreads), stream, sums, words, coded.cols, codebooks);
}

namespace {

class CudaSteps final : public LocalSearchSteps {
 public:
  CudaSteps(const TrainingShape& shape, int device, const Resources& resources)
      : shape_(shape),
        device_(device),
        resources_(resources),
        context_(std::make_shared<const DeviceContext>(device, resources.options().stream)) {
    const int64_t count = shape.rows.rows();
    const int64_t cols = shape.rows.cols();
    coded_ = {nullptr, nullptr, count, cols, shape.books, shape.bits};
    rows_ = DeviceArray<float>(count * cols, "training rows", context_, resources);
    codes_ = DeviceArray<uint8_t>(count * shape.books, "training codes", context_, resources);
    costs_ = DeviceArray<float>(count, "training codes", context_, resources);
    sum_ = DeviceArray<double>(1, "training codes", context_, resources);
    system_ = DeviceArray<double>(codebook_system_values(coded_), "codewords that occur together", context_, resources);
    codebooks_ = DeviceArray<float>((shape.books << shape.bits) * cols, "codebooks", context_, resources);
    coded_.rows = rows_.data();
    coded_.codes = codes_.data();
    context_->copy(rows_.data(), shape.rows.data(), rows_.bytes());
    context_->fill(codes_.data(), 0, codes_.size());
    context_->synchronize();
  }

  void encode(const Codebooks& books, const AdditiveEncoding& encoding) override {
    const MatrixView rows(rows_.data(), DType::f32, {coded_.count, coded_.cols, coded_.cols},
                          MemorySpace::cuda(device_));
    encode_additive_cuda(books, encoding, rows, codes_.data(), costs_.data(), device_, resources_);
  }

  double cost() override {
    const DeviceGuard guard(device_);
    launch(sum_kernel, Grid::of(1, kThreads), context_->stream(), costs_.data(), coded_.count, sum_.data());
    double sum = 0;
    context_->copy_values(&sum, sum_.data(), 1);
    context_->synchronize();
    return sum;
  }

  void update(double lambda, float* codebooks) override {
    const DeviceGuard guard(device_);
    launch_update_codebooks(coded_, lambda, system_.data(), codebooks_.data(), context_->stream());
    context_->copy_values(codebooks, codebooks_.data(), codebooks_.size());
    context_->synchronize();
  }

 private:
  const TrainingShape shape_;
  const int device_;
  const Resources resources_;
  const std::shared_ptr<const DeviceContext> context_;
  CodedRows coded_;
  DeviceArray<float> rows_;
  DeviceArray<uint8_t> codes_;
  DeviceArray<float> costs_;
  DeviceArray<double> sum_;
  DeviceArray<double> system_;
  DeviceArray<float> codebooks_;
};

}  // namespace

std::unique_ptr<LocalSearchSteps> make_local_search_steps_cuda(const TrainingShape& shape, int device,
                                                               const Resources& resources) {
  const DeviceGuard guard(device);
  return std::make_unique<CudaSteps>(shape, device, resources);
}

}  // namespace kith
