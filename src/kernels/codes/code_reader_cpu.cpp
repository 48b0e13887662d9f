#include "kernels/codes/code_reader_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/codes/code_reader_cpu.cpp"
#include <hwy/foreach_target.h>

#include "core/dtype_visit.hpp"
#include "core/host_array.hpp"
#include "kernels/codes/own_code.hpp"
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
  if (format.copies_codewords()) {
    return copy_codewords_of(format, codec.codewords, array_bytes<float>(format.part_cols()), code, out);
  }
  if (format.adds_codewords()) return decode_additive(codec, code, out);
  if (is_own_code(format)) return OwnCodeReader(codec, code).all(out);
  visit_dtype(format.dtype, [&]<typename T>(StoredAs<T>) { decode_stored<T>(code, format.cols, out); });
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

void pack_sub_codes(const uint8_t* sub_codes, int64_t count, int bits, uint8_t* code) {
  if (bits == 8) {
    std::copy_n(sub_codes, count, code);
  } else if (bits == 4) {
    for (int64_t i = 0; i < count / 2; ++i) {
      code[i] = static_cast<uint8_t>(sub_codes[2 * i] | sub_codes[2 * i + 1] << 4);
    }
    if (count % 2 != 0) code[count / 2] = sub_codes[count - 1];
  } else {
    uint32_t word = 0;
    int held = 0;
    for (int64_t i = 0; i < count; ++i) {
      word |= static_cast<uint32_t>(sub_codes[i]) << held;
      held += bits;
      if (held < 8) continue;
      *code++ = static_cast<uint8_t>(word);
      word >>= 8;
      held -= 8;
    }
    if (held > 0) *code = static_cast<uint8_t>(word);
  }
}

void unpack_sub_codes(const uint8_t* HWY_RESTRICT code, int64_t count, int bits, uint8_t* HWY_RESTRICT sub_codes) {
  if (bits == 8) {
    std::copy_n(code, count, sub_codes);
  } else if (bits == 4) {
    for (int64_t i = 0; i < count / 2; ++i) {
      sub_codes[2 * i] = code[i] & 15;
      sub_codes[2 * i + 1] = static_cast<uint8_t>(code[i] >> 4);
    }
    if (count % 2 != 0) sub_codes[count - 1] = code[count / 2] & 15;
  } else {
    int64_t done = 0;
    if (bits == 6) {  // four in three bytes, which compilers do by vectors
      done = count / 4 * 4;
      for (int64_t i = 0; i < done / 4; ++i) {
        const uint8_t* const three = code + 3 * i;
        uint8_t* const four = sub_codes + 4 * i;
        four[0] = three[0] & 63;
        four[1] = static_cast<uint8_t>(three[0] >> 6 | (three[1] & 15) << 2);
        four[2] = static_cast<uint8_t>(three[1] >> 4 | (three[2] & 3) << 4);
        four[3] = static_cast<uint8_t>(three[2] >> 2);
      }
    }
    for (int64_t i = done; i < count; ++i) sub_codes[i] = static_cast<uint8_t>(sub_code(code, i, bits));
  }
}

}  // namespace kith
#endif
