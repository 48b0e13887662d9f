// A pass of product training on a GPU: all parts in one launch, sums by atomic additions, which are exact, so that
// their order does not matter. The sample stays on the device; a pass copies codewords there and sums back, some
// hundred KiB.
#include "core/parallel_for.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/row_upload.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/assign/codewords_cuda.hpp"
#include "quantize/product/product_training.hpp"

#include <algorithm>

namespace kith {
namespace {

class ProductPassCuda final : public ProductPass {
 public:
  ProductPassCuda(const ProductSample& sample, int device, const Resources& resources)
      : sample_(sample),
        resources_(resources),
        guard_(device),
        context_(std::make_shared<const DeviceContext>(device, resources.options().stream)),
        layout_(sample.format),
        nearest_(static_cast<size_t>(sample.format.parts)),
        host_(layout_.bytes, "the codewords", resources),
        host_counts_(count_values(), "sums of rows", resources),
        tables_(layout_.bytes, "the codewords", context_, resources),
        rows_(sample.values.size(), "the training rows", context_, resources),
        labels_(sample.rows * sample.format.parts, "labels", context_, resources),
        sums_(sum_values(), "sums of rows", context_, resources),
        counts_(count_values(), "sums of rows", context_, resources) {
    const MatrixView rows(sample.values.data(), sample.rows * sample.format.parts, sample.format.part_cols());
    ProgressMeter meter("upload", 0, resources_);
    RowUpload upload(wants_pinned({}, sample.values.bytes(), resources), resources);
    upload.copy(rows, vectors<std::byte>(rows_.data()), context_->stream(), meter);
    context_->synchronize();
  }

  void run(const float* codewords, const std::vector<uint8_t>& active, double* sums, double* counts) override {
    const CodeFormat& format = sample_.format;
    const int64_t part_values = format.codewords() * format.part_cols();
    ProgressMeter meter("train codewords", 0, resources_);
    parallel_for(format.parts, meter, resources_, [&](int64_t p, int) {
      if (active[static_cast<size_t>(p)] == 0 && started_) return;
      NearestCodeword& nearest = nearest_[static_cast<size_t>(p)];
      nearest.set(codewords + p * part_values, format.codewords(), format.part_cols());
      fill_product_part(layout_, p, nearest, host_.data());
    });
    started_ = true;
    context_->copy(tables_.data(), host_.data(), layout_.bytes);
    NearestCodewordRows all;
    all.values = rows_.data();
    all.row_stride = format.part_cols();
    all.part_stride = sample_.rows * format.part_cols();
    all.count = sample_.rows;
    all.labels = labels_.data();
    all.label_row_stride = 1;
    all.label_part_stride = sample_.rows;
    launch_nearest_codewords(layout_, tables_.data(), all, context_->stream());
    context_->fill(sums_.data(), 0, sums_.size());
    context_->fill(counts_.data(), 0, counts_.size());
    launch_add_rows_by_label(layout_, rows_.data(), labels_.data(), sample_.rows, sums_.data(), counts_.data(),
                             context_->stream());
    context_->copy_values(sums, sums_.data(), sums_.size());
    context_->copy_values(host_counts_.data(), counts_.data(), counts_.size());
    context_->synchronize();
    std::copy_n(host_counts_.data(), count_values(), counts);
  }

  void get_labels(int64_t part, uint8_t* labels) override {
    context_->copy_values(labels, labels_.data() + part * sample_.rows, sample_.rows);
    context_->synchronize();
  }

 private:
  int64_t sum_values() const { return sample_.format.codewords() * sample_.format.cols; }
  int64_t count_values() const { return sample_.format.codewords() * sample_.format.parts; }

  const ProductSample& sample_;
  const Resources resources_;
  const DeviceGuard guard_;
  const std::shared_ptr<const DeviceContext> context_;
  const ProductTableLayout layout_;
  std::vector<NearestCodeword> nearest_;
  HostArray<std::byte> host_;
  HostArray<uint32_t> host_counts_;
  DeviceBuffer tables_;
  DeviceArray<float> rows_;
  DeviceArray<uint8_t> labels_;
  DeviceArray<double> sums_;
  DeviceArray<uint32_t> counts_;
  bool started_ = false;  // every part has had its tables
};

}  // namespace

std::unique_ptr<ProductPass> make_product_pass_cuda(const ProductSample& sample, int device,
                                                    const Resources& resources) {
  return std::make_unique<ProductPassCuda>(sample, device, resources);
}

}  // namespace kith
