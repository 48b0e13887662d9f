#include "kernels/codes/code_reader_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/codes/code_reader_cpu.cpp"
#include <hwy/foreach_target.h>

#include "kernels/codes/sub_codes.hpp"
#include "rows/load_cpu-inl.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kFloats = hn::MaxLanes(F32());

// Adds a vector's centre, or leaves the vector as it is.
void add_centre(const float* centre, int64_t cols, float* out) {
  if (centre == nullptr) return;
  const F32 d;
  int64_t c = 0;
  for (; c + kFloats <= cols; c += kFloats) {
    hn::StoreU(hn::Add(hn::LoadU(d, centre + c), hn::LoadU(d, out + c)), d, out + c);
  }
  for (; c < cols; ++c) out[c] = centre[c] + out[c];
}

template <typename T>
void decode_stored(const uint8_t* code, int64_t cols, float* out) {
  const F32 d;
  const T* const values = reinterpret_cast<const T*>(code);  // rows of codes are whole values
  int64_t c = 0;
  for (; c + kFloats <= cols; c += kFloats) hn::StoreU(load_floats(values + c), d, out + c);
  for (; c < cols; ++c) out[c] = static_cast<float>(values[c]);
}

// fma(code, step, base): one rounding for each value, also where the instruction set has no fused multiply-add.
void decode_scalar(const CodecView& codec, const uint8_t* code, float* out) {
  constexpr int64_t kBlock = 256;  // columns whose codes are unpacked together: whole bytes for any number of bits
  uint8_t unpacked[kBlock];
  const int bits = codec.format.bits;
  for (int64_t first = 0; first < codec.format.cols; first += kBlock) {
    const int64_t cols = std::min(kBlock, codec.format.cols - first);
    const uint8_t* codes = code + first * bits / 8;
    if (bits != 8) {
      unpack_sub_codes(codes, cols, bits, unpacked);
      codes = unpacked;
    }
    const float* const steps = codec.steps + first;
    const float* const bases = codec.bases + first;
    int64_t c = 0;
#if HWY_NATIVE_FMA
    const F32 d;
    for (; c + kFloats <= cols; c += kFloats) {
      const auto value = hn::MulAdd(load_floats(codes + c), hn::LoadU(d, steps + c), hn::LoadU(d, bases + c));
      hn::StoreU(value, d, out + first + c);
    }
#endif
    for (; c < cols; ++c) out[first + c] = std::fma(static_cast<float>(codes[c]), steps[c], bases[c]);
  }
}

// Codewords of a width that is known here are a few moves, and others a call each. 0: known at run time.
template <int64_t kWidth>
void copy_codewords(const CodecView& codec, const uint8_t* code, float* out) {
  const int64_t width = kWidth > 0 ? kWidth : codec.format.part_cols();
  const int64_t words = codec.format.codewords() * width;
  const int bits = codec.format.bits;
  const float* from = codec.codewords;
  for (int64_t p = 0; p < codec.format.parts; ++p, from += words, out += width) {
    const int64_t word = bits == 8 ? code[p] : sub_code(code, p, bits);
    std::memcpy(out, from + word * width, static_cast<size_t>(width) * sizeof(float));
  }
}

void decode_product(const CodecView& codec, const uint8_t* code, float* out) {
  switch (codec.format.part_cols()) {
    case 2: return copy_codewords<2>(codec, code, out);
    case 4: return copy_codewords<4>(codec, code, out);
    case 8: return copy_codewords<8>(codec, code, out);
    case 16: return copy_codewords<16>(codec, code, out);
    default: return copy_codewords<0>(codec, code, out);
  }
}

// In the order of the books, one rounding an addition.
void decode_additive(const CodecView& codec, const uint8_t* code, float* out) {
  const F32 d;
  const int64_t cols = codec.format.cols;
  const int64_t words = codec.format.codewords() * cols;
  const int bits = codec.format.bits;
  const float* books = codec.codewords;
  std::memcpy(out, books + sub_code(code, 0, bits) * cols, static_cast<size_t>(cols) * sizeof(float));
  for (int64_t p = 1; p < codec.format.parts; ++p) {
    const float* const word = books + p * words + sub_code(code, p, bits) * cols;
    int64_t c = 0;
    for (; c + kFloats <= cols; c += kFloats) {
      hn::StoreU(hn::Add(hn::LoadU(d, out + c), hn::LoadU(d, word + c)), d, out + c);
    }
    for (; c < cols; ++c) out[c] += word[c];
  }
}

void DecodeRows(const CodecView& codec, const uint8_t* codes, int64_t count, const float* centre, float* out) {
  const CodeFormat& format = codec.format;
  const int64_t bytes = format.bytes();
  for (int64_t i = 0; i < count; ++i, codes += bytes, out += format.cols) {
    if (format.steps_columns()) {
      decode_scalar(codec, codes, out);
    } else if (format.copies_codewords()) {
      decode_product(codec, codes, out);
    } else if (format.adds_codewords()) {
      decode_additive(codec, codes, out);
    } else {
      switch (format.dtype) {
        case DType::f16: decode_stored<Half>(codes, format.cols, out); break;
        case DType::bf16: decode_stored<BFloat16>(codes, format.cols, out); break;
        case DType::u8: decode_stored<uint8_t>(codes, format.cols, out); break;
        case DType::i8: decode_stored<int8_t>(codes, format.cols, out); break;
        default: decode_stored<float>(codes, format.cols, out);
      }
    }
    add_centre(centre, format.cols, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(DecodeRows);

void decode_rows_cpu(const CodecView& codec, const uint8_t* codes, int64_t count, const float* centre, float* out) {
  HWY_DYNAMIC_DISPATCH(DecodeRows)(codec, codes, count, centre, out);
}

}  // namespace kith
#endif
