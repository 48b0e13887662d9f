// What every index in a FAISS file begins with, and the rows that flat ones go on with.
#pragma once

#include <kith/matrix_buffer.hpp>

#include "index/index_parts.hpp"
#include "interop/faiss_source.hpp"

#include <cstdint>
#include <limits>
#include <string_view>

namespace kith {

// Numbers in FAISS's files: metrics, and types of its scalar quantizer.

enum class FaissMetric : int32_t { inner_product = 0, l2 = 1, l1 = 2, linf = 3 };

enum class FaissScalar : int32_t {
  bits8 = 0,
  bits4 = 1,
  bits8_uniform = 2,
  bits4_uniform = 3,
  fp16 = 4,
  bits8_direct = 5,
  bits6 = 6,
  bf16 = 7,
  bits8_direct_signed = 8
};

inline constexpr int64_t kMostFaissRows = std::numeric_limits<int32_t>::max();
inline constexpr uint32_t kMostFaissCols = 1 << 20;  // FAISS's own limit

struct FaissHeader {
  int64_t cols = 0;
  int64_t rows = 0;
  FaissMetric metric = FaissMetric::l2;
};

FaissHeader read_faiss_header(FaissSource& source);

// Parts with the header's numbers.
IndexParts begun_parts(FaissSource& source, const FaissHeader& header);

MatrixBuffer read_faiss_rows(FaissSource& source, const FaissHeader& header);

// Whether an index of that tag is vectors as they are.
bool is_flat_tag(std::string_view tag);

}  // namespace kith
