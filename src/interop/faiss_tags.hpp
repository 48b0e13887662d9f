// Numbers in FAISS's files: metrics, and types of its scalar quantizer.
#pragma once

#include <cstdint>

namespace kith {

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

}  // namespace kith
