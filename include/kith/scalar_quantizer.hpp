// Scalar quantizer: each value of a vector is rounded to a few bits, between the least and the largest value that its
// column had in training; or, with 16 bits, to the nearest f16, without training values.
//
// Codes are those of FAISS for the same ranges, bit for bit, and the same on every device, with any number of threads.
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

struct ScalarQuantizerParams {
  int bits = 8;              // of a value: 4, 6, 8, or 16 for f16
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// One thread may train while others encode: these use the ranges that were there when they began.
class KITH_EXPORT ScalarQuantizer {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit ScalarQuantizer(ScalarQuantizerParams params);
  ~ScalarQuantizer();
  ScalarQuantizer(ScalarQuantizer&&) noexcept;
  ScalarQuantizer& operator=(ScalarQuantizer&&) noexcept;

  // All rows are looked at. After an exception the former state stays.
  void train(const MatrixView& rows, const Resources& resources = Resources());
  void train(const VectorFile& rows, const Resources& resources = Resources());

  // Takes ranges that were found before: the least value of each of `cols` columns, then the span of each, in host
  // memory; none for 16 bits.
  void set_values(int64_t cols, const VectorView<const float>& ranges);
  std::vector<float> values() const;

  const ScalarQuantizerParams& params() const;
  bool trained() const;
  int64_t cols() const;        // of vectors; 0 before training, and so is
  int64_t code_bytes() const;  // of a vector: (cols * bits + 7) / 8

  // Values beyond a range go to its end; with 16 bits a value that f16 cannot hold is InvalidArgument. Codes lie one
  // after the other from the lowest bit of the first byte on. `codes`: u8, rows x code_bytes().
  void encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources = Resources()) const;
  // The middle of what each code stands for: f32, rows x cols().
  void decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources = Resources()) const;

  // What each code of each column adds to the squared distance (Metric::sqeuclidean) or inner product of a query and a
  // vector: f32, queries x (cols() * 2^bits), in host memory. Unsupported for 16 bits.
  void lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                    const Resources& resources = Resources()) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kith
