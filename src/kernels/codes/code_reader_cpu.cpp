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
HWY_INLINE void decode_steps(const uint8_t* codes, const float* steps, const float* bases, int64_t cols, float* out) {
  int64_t c = 0;
#if HWY_NATIVE_FMA
  const F32 d;
  for (; c + kFloats <= cols; c += kFloats) {
    hn::StoreU(hn::MulAdd(load_floats(codes + c), hn::LoadU(d, steps + c), hn::LoadU(d, bases + c)), d, out + c);
  }
#endif
  for (; c < cols; ++c) out[c] = std::fma(static_cast<float>(codes[c]), steps[c], bases[c]);
}

void decode_scalar(const CodecView& codec, const uint8_t* codes, int64_t count, float* out) {
  constexpr int64_t kBlock = 256;  // columns whose codes are unpacked together: whole bytes for any number of bits
  uint8_t unpacked[kBlock];
  const int64_t cols = codec.format.cols;
  const int64_t bytes = codec.format.bytes();
  const int bits = codec.format.bits;
  for (int64_t first = 0; first < cols; first += kBlock) {
    const int64_t some = std::min(kBlock, cols - first);
    const uint8_t* from = codes + first * bits / 8;
    float* to = out + first;
    for (int64_t i = 0; i < count; ++i, from += bytes, to += cols) {
      if (bits != 8) unpack_sub_codes(from, some, bits, unpacked);
      decode_steps(bits == 8 ? from : unpacked, codec.steps + first, codec.bases + first, some, to);
    }
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

void decode_row(const CodecView& codec, const uint8_t* code, float* out) {
  const CodeFormat& format = codec.format;
  if (format.copies_codewords()) return decode_product(codec, code, out);
  if (format.adds_codewords()) return decode_additive(codec, code, out);
  switch (format.dtype) {
    case DType::f16: return decode_stored<Half>(code, format.cols, out);
    case DType::bf16: return decode_stored<BFloat16>(code, format.cols, out);
    case DType::u8: return decode_stored<uint8_t>(code, format.cols, out);
    case DType::i8: return decode_stored<int8_t>(code, format.cols, out);
    default: return decode_stored<float>(code, format.cols, out);
  }
}

void DecodeRows(const CodecView& codec, const uint8_t* codes, int64_t count, const float* centre, float* out) {
  const int64_t cols = codec.format.cols;
  const bool scalar = codec.format.steps_columns();
  if (scalar) decode_scalar(codec, codes, count, out);
  for (int64_t i = 0; i < count; ++i) {
    if (!scalar) decode_row(codec, codes + i * codec.format.bytes(), out + i * cols);
    add_centre(centre, cols, out + i * cols);
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
