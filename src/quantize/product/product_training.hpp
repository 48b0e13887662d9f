// Training of a product quantizer: a k-means per sub-vector, all in parallel (Jegou et al., "Product quantization for
// nearest neighbor search", 2011, section II).
//
// Uses a sample of many rows. Values of a column are rounded to multiples of a power of two: coarse enough for float64
// to add up all rows exactly, and fine enough for values within 2^13 of the column's largest to keep all digits. So the
// order of sums does not matter: all devices and numbers of threads give the same codewords. The first codewords are
// distinct sub-vectors, drawn by the seed. A codeword without rows moves to the row farthest from its own. If there are
// fewer distinct sub-vectors than codewords, the first codeword repeats.
//
// Cost: 25 iterations x rows x 2^bits x columns multiplications. Memory: the sample as f32; if the limit is too small,
// parts are trained one after the other, each on its columns of the same rows, which are read again.
#pragma once

#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "kernels/codes/code_format.hpp"
#include "rows/row_source.hpp"
#include "rows/rows_info.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

inline constexpr int64_t kProductIterations = 25;
inline constexpr int64_t kMostRowsPerCodeword = 256;  // beyond that, a sample
inline constexpr int64_t kFewRowsPerCodeword = 39;    // below that, a warning

// Consecutive parts of a code that are trained together.
struct PartRange {
  int64_t first = 0;
  int64_t count = 0;

  // The format of a code of only these parts.
  CodeFormat of(const CodeFormat& whole) const {
    CodeFormat format = whole;
    format.parts = count;
    format.cols = count * whole.part_cols();
    return format;
  }
};

// The training sample, part by part: the rows of each part are contiguous.
struct ProductSample {
  ProductSample(const CodeFormat& code, int64_t count, const Resources& resources)
      : format(code), rows(count), values(count * code.cols, "the training rows", resources) {}

  CodeFormat format;
  int64_t rows = 0;
  HostArray<float> values;  // parts x rows x part_cols

  const float* part(int64_t p) const { return values.data() + p * rows * format.part_cols(); }
};

// One pass of k-means: assigns every row of the sample to its nearest codeword and adds up the rows of each; the loop
// around it is shared by all devices. Codewords, sums and counts are for all parts, in host memory; those of parts that
// are not `active` are undefined.
class ProductPass {
 public:
  virtual ~ProductPass() = default;
  virtual void run(const float* codewords, const std::vector<uint8_t>& active, double* sums, double* counts) = 0;
  // The labels of a part's rows after the last pass.
  virtual void get_labels(int64_t part, uint8_t* labels) = 0;
};

// Unsupported without CUDA.
std::unique_ptr<ProductPass> make_product_pass_cuda(const ProductSample& sample, int device,
                                                    const Resources& resources);

ProductSample draw_product_sample(const CodeFormat& format, const PartRange& parts, RowSource& rows, uint64_t seed,
                                  const Resources& resources);

// The least memory of training; on a GPU if the rows are there or the resources name one.
Footprint product_training_footprint(const CodeFormat& format, const RowsInfo& rows, const Resources& resources);

// parts x 2^bits x part_cols.
std::vector<float> train_product(const CodeFormat& format, RowSource& rows, uint64_t seed, const Resources& resources);

}  // namespace kith
