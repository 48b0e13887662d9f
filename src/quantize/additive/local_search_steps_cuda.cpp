// Rows, codes and costs stay on the device from the first round to the last; codebooks come to the host after each
// update, where they are moved and rounded, and go back for the search.
#include "cuda/device_array.hpp"
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
    launch_sum(costs_.data(), coded_.count, sum_.data(), context_->stream());
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
