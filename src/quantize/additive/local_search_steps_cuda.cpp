// Rows, codes and costs stay on the device from the first round to the last; codebooks come to the host after each
// update, where they are moved and rounded, and go back for the search.
#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "quantize/additive/additive_encoding_cuda.hpp"
#include "quantize/additive/codebook_update_cuda.hpp"
#include "quantize/additive/local_search_steps.hpp"

#include <utility>

namespace kith {
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
    rows_ = DeviceBuffer(count * cols * 4, "training rows", context_, resources);
    codes_ = DeviceBuffer(count * shape.books, "training codes", context_, resources);
    costs_ = DeviceBuffer(count * 4, "training codes", context_, resources);
    sum_ = DeviceBuffer(sizeof(double), "training codes", context_, resources);
    workspace_ = DeviceBuffer(codebook_update_bytes_cuda(coded_), "codewords that occur together", context_, resources);
    codebooks_ = DeviceBuffer((shape.books << shape.bits) * cols * 4, "codebooks", context_, resources);
    coded_.rows = reinterpret_cast<const float*>(rows_.data());
    coded_.codes = reinterpret_cast<const uint8_t*>(codes_.data());
    context_->copy(rows_.data(), shape.rows.data(), count * cols * 4);
    KITH_CUDA_CHECK(cudaMemsetAsync(codes_.data(), 0, static_cast<size_t>(codes_.bytes()), context_->stream()));
    context_->synchronize();
  }

  void encode(const Codebooks& books, const AdditiveEncoding& encoding) override {
    const MatrixView rows(rows_.data(), DType::f32, {coded_.count, coded_.cols, coded_.cols},
                          MemorySpace::cuda(device_));
    encode_additive_cuda(books, encoding, rows, reinterpret_cast<uint8_t*>(codes_.data()),
                         reinterpret_cast<float*>(costs_.data()), device_, resources_);
  }

  double cost() override {
    const DeviceGuard guard(device_);
    auto* const there = reinterpret_cast<double*>(sum_.data());
    launch_sum(reinterpret_cast<const float*>(costs_.data()), coded_.count, there, context_->stream());
    double sum = 0;
    context_->copy(&sum, there, sizeof sum);
    context_->synchronize();
    return sum;
  }

  void update(double lambda, float* codebooks) override {
    const DeviceGuard guard(device_);
    launch_update_codebooks(coded_, lambda, workspace_.data(), reinterpret_cast<float*>(codebooks_.data()),
                            context_->stream());
    context_->copy(codebooks, codebooks_.data(), codebooks_.bytes());
    context_->synchronize();
  }

 private:
  const TrainingShape shape_;
  const int device_;
  const Resources resources_;
  const std::shared_ptr<const DeviceContext> context_;
  CodedRows coded_;
  DeviceBuffer rows_;
  DeviceBuffer codes_;
  DeviceBuffer costs_;
  DeviceBuffer sum_;
  DeviceBuffer workspace_;
  DeviceBuffer codebooks_;
};

}  // namespace

std::unique_ptr<LocalSearchSteps> make_local_search_steps_cuda(const TrainingShape& shape, int device,
                                                               const Resources& resources) {
  const DeviceGuard guard(device);
  return std::make_unique<CudaSteps>(shape, device, resources);
}

}  // namespace kith
