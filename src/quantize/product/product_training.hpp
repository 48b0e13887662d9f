// Codewords of a product quantizer: a k-means for each sub-vector, all of them in step (Jegou et al., "Product
// quantization for nearest neighbor search", 2011, section II).
//
// Many rows are sampled. Values are rounded, column by column, to multiples of a power of two so coarse
// that float64 adds up all rows without rounding, and so fine that values within 2^13 of the column's largest keep all
// digits: sums have no order, and every device and number of threads gives the same codewords. The first codewords
// are distinct sub-vectors of rows drawn by seed. A codeword that no row is nearest to takes the row that is farthest
// from its own. Where there are fewer distinct sub-vectors than codewords, each gets one, and the first fills up.
//
// Cost: 25 iterations x rows x 2^bits x columns multiplications. Memory: the sample, as f32; where the limit has no
// room for that, some parts are trained after the others, each on its columns of the same rows, which are drawn again.
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
inline constexpr int64_t kMostRowsPerCodeword = 256;  // more are sampled
inline constexpr int64_t kFewRowsPerCodeword = 39;    // fewer are warned of

// Some parts of a code, trained together.
struct PartRange {
  int64_t first = 0;
  int64_t count = 0;

  // The code that these parts are alone.
  CodeFormat of(const CodeFormat& whole) const {
    CodeFormat format = whole;
    format.parts = count;
    format.cols = count * whole.part_cols();
    return format;
  }
};

// What is trained on: for each part its rows, one after the other.
struct ProductSample {
  ProductSample(const CodeFormat& code, int64_t count, const Resources& resources)
      : format(code), rows(count), values(count * code.cols, "the training rows", resources) {}

  CodeFormat format;
  int64_t rows = 0;
  HostArray<float> values;  // parts x rows x part_cols

  const float* part(int64_t p) const { return values.data() + p * rows * format.part_cols(); }
};

// One pass: every row of the sample to its nearest codeword, and the codewords' rows added up; the loop around it is
// the same for every device. Codewords, sums and counts are for all parts, in host memory; what becomes of the parts
// that are not `active` is of no interest.
class ProductPass {
 public:
  virtual ~ProductPass() = default;
  virtual void run(const float* codewords, const std::vector<uint8_t>& active, double* sums, double* counts) = 0;
  // Labels of a part's rows in the last pass.
  virtual void get_labels(int64_t part, uint8_t* labels) = 0;
};

// Unsupported without CUDA.
std::unique_ptr<ProductPass> make_product_pass_cuda(const ProductSample& sample, int device,
                                                    const Resources& resources);

ProductSample draw_product_sample(const CodeFormat& format, const PartRange& parts, RowSource& rows, uint64_t seed,
                                  const Resources& resources);

// What training takes at least, on a GPU where the rows lie there or the resources name one.
Footprint product_training_footprint(const CodeFormat& format, const RowsInfo& rows, const Resources& resources);

// parts x 2^bits x part_cols.
std::vector<float> train_product(const CodeFormat& format, RowSource& rows, uint64_t seed, const Resources& resources);

}  // namespace kith
