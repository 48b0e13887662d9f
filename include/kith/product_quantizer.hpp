// Product quantizer: a vector is cut into sub-vectors, and each becomes the number of its nearest codeword (Jegou et
// al., "Product quantization for nearest neighbor search", 2011). A vector of any number of columns takes parts * bits
// bits.
//
// Training is a k-means of each sub-vector. A code is exact: of all codewords the first by (squared distance, number),
// where a distance is computed in float64 and rounded once to f32. So the same rows, parameters and seed give the same
// bytes on every device, with any number of threads, from a file as from memory.
//
// Rows, codes and outputs may lie in host memory or in that of a GPU. Every function returns when its result is
// complete.
#pragma once

#include <kith/export.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

struct ProductQuantizerParams {
  int64_t parts = 8;         // sub-vectors; must divide the columns
  int bits = 8;              // of a sub-vector's code, 4 to 8: 2^bits codewords each
  uint64_t seed = 0;         // of the training sample and its first codewords
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// One thread may train while others encode: these use the codewords that were there when they began.
class KITH_EXPORT ProductQuantizer {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit ProductQuantizer(ProductQuantizerParams params);
  ~ProductQuantizer();
  ProductQuantizer(ProductQuantizer&&) noexcept;
  ProductQuantizer& operator=(ProductQuantizer&&) noexcept;

  // Of more than 256 rows for each codeword a sample is used. Fewer rows than codewords are InvalidArgument; fewer than
  // 39 for each are warned of. After an exception the former state stays.
  void train(const MatrixView& rows, const Resources& resources = Resources());
  void train(const VectorFile& rows, const Resources& resources = Resources());

  // Takes codewords that were trained before: parts x 2^bits x columns of a part, one after the other, in host memory.
  void set_values(const VectorView<const float>& codewords);
  std::vector<float> values() const;

  const ProductQuantizerParams& params() const;
  bool trained() const;
  int64_t cols() const;        // of vectors; 0 before training, and so is
  int64_t code_bytes() const;  // of a vector: (parts * bits + 7) / 8

  // Sub-codes lie one after the other from the lowest bit of the first byte on. `codes`: u8, rows x code_bytes().
  void encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources = Resources()) const;
  // The codewords side by side: f32, rows x cols().
  void decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources = Resources()) const;

  // What each codeword adds to the squared distance (Metric::sqeuclidean) or inner product of a query and a code: f32,
  // queries x (parts * 2^bits), in host memory.
  void lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                    const Resources& resources = Resources()) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kith
