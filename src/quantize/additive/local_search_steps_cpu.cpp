#include "core/host_array.hpp"
#include "quantize/additive/codebook_update.hpp"
#include "quantize/additive/local_search_steps.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

class CpuSteps final : public LocalSearchSteps {
 public:
  CpuSteps(const TrainingShape& shape, const Resources& resources)
      : shape_(shape),
        resources_(resources),
        codes_(shape.rows.rows() * shape.books, "training codes", resources),
        costs_(shape.rows.rows(), "training codes", resources) {
    std::fill(codes_.begin(), codes_.end(), uint8_t{0});
  }

  void encode(const Codebooks& books, const AdditiveEncoding& encoding) override {
    encode_additive(books, encoding, shape_.rows, codes_.data(), costs_.data(), resources_);
  }

  double cost() override {
    double sum = 0;
    for (const float cost : costs_) sum += static_cast<double>(cost);
    return sum;
  }

  void update(double lambda, float* codebooks) override {
    const CodedRows coded{static_cast<const float*>(shape_.rows.data()), codes_.data(), shape_.rows.rows(),
                          shape_.rows.cols(), shape_.books, shape_.bits};
    update_codebooks(coded, lambda, codebooks, resources_);
  }

 private:
  const TrainingShape shape_;
  const Resources resources_;
  HostArray<uint8_t> codes_;
  HostArray<float> costs_;
};

}  // namespace

std::unique_ptr<LocalSearchSteps> make_local_search_steps_cpu(const TrainingShape& shape, const Resources& resources) {
  return std::make_unique<CpuSteps>(shape, resources);
}

}  // namespace kith
