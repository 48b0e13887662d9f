// Four neighbouring columns of a code as f32, by one thread: what re-ranking and preparing read codes with, and the
// scan too where it has no quicker way. Columns past the last are zero. First column and step are multiples of four.
#pragma once

#include "core/half.hpp"
#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/codes/code_format.hpp"

#include <cuda_fp16.h>

#include <cstdint>

namespace kith {

struct FourFloats {
  float values[4];
};

__device__ inline float stored_value(const uint8_t* code, DType dtype, int col) {
  switch (dtype) {
    case DType::f16: return static_cast<float>(vectors<Half>(code)[col]);
    case DType::bf16: return static_cast<float>(vectors<BFloat16>(code)[col]);
    case DType::u8: return static_cast<float>(code[col]);
    case DType::i8: return static_cast<float>(vectors<int8_t>(code)[col]);
    default: return vectors<float>(code)[col];
  }
}

// The sum of one codeword of each book, in the order of the books.
__device__ inline FourFloats decode_four_additive(const CodecView& codec, const uint8_t* code, int first) {
  const int cols = static_cast<int>(codec.format.cols);
  const auto parts = static_cast<int>(codec.format.parts);
  const int bits = codec.format.bits;
  FourFloats four = {};
  for (int p = 0; p < parts; ++p) {
    const uint32_t number = bits == 8 ? code[p] : sub_code(code, p, bits);
    const float* const word = codec.codewords + ((static_cast<int64_t>(p) << bits) + number) * cols + first;
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (first + i >= cols) break;
      four.values[i] = p == 0 ? word[i] : __fadd_rn(four.values[i], word[i]);
    }
  }
  return four;
}

__device__ inline FourFloats decode_four(const CodecView& codec, const uint8_t* code, int first) {
  const CodeFormat& format = codec.format;
  const int cols = static_cast<int>(format.cols);
  FourFloats four = {};
  if (first >= cols) return four;
  if (format.kind == CodeKind::product) {
    const int each = static_cast<int>(format.part_cols());
    int part = first / each;
    int inside = first - part * each;
    const float* word = nullptr;
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (first + i >= cols) break;
      if (inside == each) {
        ++part;
        inside = 0;
        word = nullptr;
      }
      if (word == nullptr) {
        const uint32_t number = format.bits == 8 ? code[part] : sub_code(code, part, format.bits);
        word = codec.codewords + (((static_cast<int64_t>(part) << format.bits) + number) * each);
      }
      four.values[i] = word[inside++];
    }
    return four;
  }
  if (format.kind == CodeKind::additive) return decode_four_additive(codec, code, first);
  if (format.kind == CodeKind::stored && format.dtype == DType::f32 && cols % 4 == 0) {
    const auto value = load_vector<float4>(code + 4 * static_cast<int64_t>(first));
    return {{value.x, value.y, value.z, value.w}};
  }
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int col = first + i;
    if (col >= cols) break;
    if (format.kind == CodeKind::stored) {
      four.values[i] = stored_value(code, format.dtype, col);
    } else {
      const uint32_t number = format.bits == 8 ? code[col] : sub_code(code, col, format.bits);
      four.values[i] = fmaf(static_cast<float>(number), codec.steps[col], codec.bases[col]);
    }
  }
  return four;
}

// What matrix units multiply: value * scale - origin, rounded to f32 and then to a half. The origin is scaled already.
__device__ inline uint2 halves_of(const FourFloats& four, float scale, const float4& origin) {
  const __half2 low = __floats2half2_rn(fmaf(four.values[0], scale, -origin.x), fmaf(four.values[1], scale, -origin.y));
  const __half2 high =
      __floats2half2_rn(fmaf(four.values[2], scale, -origin.z), fmaf(four.values[3], scale, -origin.w));
  return {*reinterpret_cast<const uint32_t*>(&low), *reinterpret_cast<const uint32_t*>(&high)};
}

__device__ inline FourFloats floats_of(uint2 halves) {
  const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&halves.x));
  const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&halves.y));
  return {{low.x, low.y, high.x, high.y}};
}

}  // namespace kith
