// One pass of product training: every row of the sample to its nearest codeword, and the codewords' rows added up. The
// loop around it is the same for every device (product_training.hpp).
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "kernels/codes/code_format.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// What is trained on: for each part its rows, one after the other.
struct ProductSample {
  ProductSample(const CodeFormat& code, int64_t count, const Resources& resources)
      : format(code), rows(count), values(count * code.cols, "the training rows", resources) {}

  CodeFormat format;
  int64_t rows = 0;
  HostArray<float> values;  // parts x rows x part_cols

  const float* part(int64_t p) const { return values.data() + p * rows * format.part_cols(); }
};

// On a device. Codewords, sums and counts are for all parts, in host memory; what becomes of the parts that are not
// `active` is of no interest.
class ProductPass {
 public:
  virtual ~ProductPass() = default;
  virtual void run(const float* codewords, const std::vector<uint8_t>& active, double* sums, double* counts) = 0;
  // Labels of a part's rows in the last pass.
  virtual void get_labels(int64_t part, uint8_t* labels) = 0;
};

std::unique_ptr<ProductPass> make_product_pass_cpu(const ProductSample& sample, const Resources& resources);
// Unsupported without CUDA.
std::unique_ptr<ProductPass> make_product_pass_cuda(const ProductSample& sample, int device,
                                                    const Resources& resources);

}  // namespace kith
