// What a trained code is made of, as plain data: the values that files hold, and the tables made from them.
#pragma once

#include "kernels/assign/codewords_cpu.hpp"
#include "kernels/codes/code_format.hpp"

#include <cstdint>
#include <vector>

namespace kith {

inline constexpr int64_t kMostCodebooks = 128;
inline constexpr int kMostBeam = 64;

struct CodeSpec {
  CodeKind kind = CodeKind::stored;
  DType dtype = DType::f32;  // of stored values
  int bits = 8;              // of a value (4, 6, 8), a sub-vector (4 to 8) or a codebook (1 to 8)
  int64_t parts = 0;         // sub-vectors, or codebooks
  AdditiveSearch search = AdditiveSearch::local;
  int effort = 16;  // as CodeFormat's
  CodeNorm norm = CodeNorm::decoded;

  // InvalidArgument for bits and parts that make no codes at all,
  void validate() const;
  // and for what makes no codes of so many columns; near divisors are named.
  CodeFormat format_for(int64_t cols) const;
};

// How many codewords, as long as the row, finding a code compares it with; at least 1.
double compared_codewords(const CodeFormat& format);

struct CodecTables {
  CodeFormat format;
  std::vector<float> values;             // as Codec::values() has them
  std::vector<float> levels;             // of the norms of additive codes
  std::vector<float> bases;              // of scalar codes
  std::vector<float> steps;              // likewise
  std::vector<NearestCodeword> nearest;  // of product codes: one for each part

  // InvalidArgument for another number of values, or values that are not finite.
  CodecTables(const CodeFormat& given, std::vector<float> trained);

  const float* leasts() const { return values.data(); }
  const float* spans() const { return values.data() + format.cols; }
  CodecView view() const;
  int64_t bytes() const;
  // At most that, for such a code.
  static int64_t bytes_for(const CodeFormat& format);
};

}  // namespace kith
