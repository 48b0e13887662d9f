// A pass of product training on the CPU: parts, and runs of their rows, side by side. What each adds up is exact, so
// that it does not matter how many there are.
#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "kernels/assign/codewords_cpu.hpp"
#include "quantize/product/product_pass.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kLeastRows = 4096;  // of a run
constexpr int64_t kBlockRows = 1024;  // assigned and added up while they are in the cache

class ProductPassCpu final : public ProductPass {
 public:
  ProductPassCpu(const ProductSample& sample, const Resources& resources)
      : sample_(sample),
        resources_(resources),
        runs_(std::clamp<int64_t>(divide_up(4 * resources.threads(), sample.format.parts), 1,
                                  std::max<int64_t>(1, sample.rows / kLeastRows))),
        run_rows_(divide_up(sample.rows, runs_)),
        nearest_(static_cast<size_t>(sample.format.parts)),
        labels_(sample.format.parts * sample.rows, "labels", resources),
        sums_(resources.threads() > 1 ? tasks() * sum_values() : 0, "sums of rows", resources),
        counts_(resources.threads() > 1 ? tasks() * sample.format.codewords() : 0, "sums of rows", resources),
        scratch_(resources.threads() * NearestCodeword::scratch_floats(sample.format.part_cols()), "a block of rows",
                 resources) {}

  void run(const float* codewords, const std::vector<uint8_t>& active, double* sums, double* counts) override {
    const int64_t cols = sample_.format.part_cols();
    const int64_t count = sample_.format.codewords();
    const bool apart = sums_.size() > 0;
    ProgressMeter meter("train codewords", 0, resources_);
    parallel_for(sample_.format.parts, meter, resources_, [&](int64_t p, int) {
      if (active[static_cast<size_t>(p)] == 0) return;
      nearest_[static_cast<size_t>(p)].set(codewords + p * sum_values(), count, cols);
      std::fill_n(sums + p * sum_values(), sum_values(), 0.0);
      std::fill_n(counts + p * count, count, 0.0);
    });
    parallel_for(tasks(), meter, resources_, [&](int64_t task, int slot) {
      const int64_t p = task / runs_;
      if (active[static_cast<size_t>(p)] == 0) return;
      double* const own_sums = apart ? sums_.data() + task * sum_values() : sums + p * sum_values();
      double* const own_counts = apart ? counts_.data() + task * count : counts + p * count;
      if (apart) {
        std::fill_n(own_sums, sum_values(), 0.0);
        std::fill_n(own_counts, count, 0.0);
      }
      float* const scratch = scratch_.data() + slot * NearestCodeword::scratch_floats(cols);
      const int64_t end = std::min(sample_.rows, (task % runs_ + 1) * run_rows_);
      for (int64_t first = task % runs_ * run_rows_; first < end; first += kBlockRows) {
        const int64_t some = std::min(kBlockRows, end - first);
        const float* const rows = sample_.part(p) + first * cols;
        uint8_t* const labels = labels_.data() + p * sample_.rows + first;
        nearest_[static_cast<size_t>(p)].nearest(rows, cols, some, labels, 1, scratch);
        add_rows_cpu(MatrixView(rows, some, cols), labels, own_sums, own_counts);
      }
    });
    for (int64_t task = 0; apart && task < tasks(); ++task) {
      const int64_t p = task / runs_;
      if (active[static_cast<size_t>(p)] == 0) continue;
      for (int64_t i = 0; i < sum_values(); ++i) sums[p * sum_values() + i] += sums_[task * sum_values() + i];
      for (int64_t k = 0; k < count; ++k) counts[p * count + k] += counts_[task * count + k];
    }
  }

  void get_labels(int64_t part, uint8_t* labels) override {
    std::copy_n(labels_.data() + part * sample_.rows, sample_.rows, labels);
  }

 private:
  int64_t tasks() const { return sample_.format.parts * runs_; }
  int64_t sum_values() const { return sample_.format.codewords() * sample_.format.part_cols(); }  // of a part

  const ProductSample& sample_;
  const Resources resources_;
  const int64_t runs_;  // of each part's rows
  const int64_t run_rows_;
  std::vector<NearestCodeword> nearest_;
  HostArray<uint8_t> labels_;
  HostArray<double> sums_;  // of each task; none where one thread does them all
  HostArray<double> counts_;
  HostArray<float> scratch_;
};

}  // namespace

std::unique_ptr<ProductPass> make_product_pass_cpu(const ProductSample& sample, const Resources& resources) {
  return std::make_unique<ProductPassCpu>(sample, resources);
}

}  // namespace kith
