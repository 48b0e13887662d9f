// How the scan of lists reads codes: four neighbouring columns of a vector as halves, by one thread, which has columns
// 4 (lane % 4) to 4 (lane % 4) + 3 of every step of 16. A codec is one of these, or the general one. hold() is called
// for a vector ahead of its use; four() has no branch where all 128 columns are there, so that loads go together.
#pragma once

#include "cuda/ptx.hpp"
#include "ivf/decode_four_cuda.hpp"
#include "ivf/device_lists_cuda.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// What every decoder is made from. `origin` is zero where nothing is to be subtracted.
struct DecoderInput {
  const DeviceListsView& lists;
  const PreparedLists& prepared;
  float scale;
  const float* origin;     // in shared memory, scaled, padded with zeros to a multiple of 16 columns
  const std::byte* table;  // in shared memory: the codewords' halves
};

// Codes of 8 bits for sub-vectors of a multiple of four columns, from a table in shared memory. Of a code of up to 32
// bytes a thread holds those that it needs, one for each step of 16 columns, packed: they are asked for before the
// vectors of the tile before are multiplied.
class CodewordDecoder {
 public:
  static constexpr bool kHasTable = true;
  struct Held {
    uint2 bytes;
  };

  __device__ explicit CodewordDecoder(const DecoderInput& input)
      : table_(input.table),
        cols_(static_cast<int>(input.lists.codec.format.cols)),
        fours_(static_cast<int>(input.lists.codec.format.part_cols()) / 4),
        inverse_((65536 + fours_ - 1) / fours_),
        words_(cols_ == 128 && fours_ <= 4 && fours_ != 3 ? 32 / fours_ / 4 : 0) {}

  __device__ Held hold(const uint8_t* code) const {
    const unsigned quarter = threadIdx.x % 4;
    if (words_ == 2) return {__ldg(reinterpret_cast<const uint2*>(code))};
    if (words_ == 4) {
      const uint4 all = __ldg(reinterpret_cast<const uint4*>(code));
      const unsigned select = 0x6420u + 0x1111u * (quarter / 2);
      return {{__byte_perm(all.x, all.y, select), __byte_perm(all.z, all.w, select)}};
    }
    if (words_ == 8) {
      const uint4 first = __ldg(reinterpret_cast<const uint4*>(code));
      const uint4 second = __ldg(reinterpret_cast<const uint4*>(code) + 1);
      const unsigned select = 0x0040u + 0x0011u * quarter;
      const auto four = [&](const uint4& words) {
        return __byte_perm(__byte_perm(words.x, words.y, select), __byte_perm(words.z, words.w, select), 0x5410);
      };
      return {{four(first), four(second)}};
    }
    Held held{{0, 0}};
    KITH_UNROLL
    for (int step = 0; step < 8; ++step) {
      const int unit = 4 * step + static_cast<int>(quarter);
      const uint32_t byte = 4 * unit < cols_ ? code[unit * inverse_ >> 16] : 0;
      (step < 4 ? held.bytes.x : held.bytes.y) |= byte << (8 * (step % 4));
    }
    return held;
  }

  __device__ bool full() const { return cols_ == 128; }

  template <bool kFull>
  __device__ uint2 four(const Held& held, int step) const {
    const int unit = 4 * step + static_cast<int>(threadIdx.x) % 4;
    if (!kFull && 4 * unit >= cols_) return {0, 0};
    const int part = unit * inverse_ >> 16;  // right for fewer than 256 units
    const int inside = unit - part * fours_;
    const int number = static_cast<int>((step < 4 ? held.bytes.x : held.bytes.y) >> (8 * (step % 4)) & 255u);
    return *reinterpret_cast<const uint2*>(table_ + ((part * 256 + number) * fours_ + inside) * 8);
  }

 private:
  const std::byte* table_;
  int cols_;
  int fours_;
  int inverse_;
  int words_;  // of a code that is read in one or two loads; else 0
};

// f32 or f16 as stored; a multiple of four columns.
template <typename Value>
class StoredDecoder {
 public:
  static constexpr bool kHasTable = false;
  struct Held {
    const uint8_t* code;
  };

  __device__ explicit StoredDecoder(const DecoderInput& input)
      : origin_(input.origin),
        scale_(input.scale),
        cols_(static_cast<int>(input.lists.codec.format.cols)),
        subtracts_(input.lists.subtracts()) {}

  // Vectors are on their way to the second-level cache while those of the tile before are multiplied.
  __device__ Held hold(const uint8_t* code) const {
    const unsigned line = threadIdx.x % 4 * 128;
    if (line < cols_ * sizeof(Value)) ptx::prefetch(code + line);
    return {code};
  }

  __device__ bool full() const { return cols_ == 128; }

  template <bool kFull>
  __device__ uint2 four(const Held& held, int step) const {
    const uint8_t* const code = held.code;
    const int first = 16 * step + static_cast<int>(threadIdx.x) % 4 * 4;
    if (!kFull && first >= cols_) return {0, 0};
    FourFloats four;
    if constexpr (sizeof(Value) == 4) {
      const float4 loaded = __ldcs(reinterpret_cast<const float4*>(code) + first / 4);
      four = {{loaded.x, loaded.y, loaded.z, loaded.w}};
    } else {
      four = floats_of(__ldcs(reinterpret_cast<const uint2*>(code) + first / 4));
    }
    float4 origin = *reinterpret_cast<const float4*>(origin_ + first);
    if (!subtracts_) origin = {0, 0, 0, 0};
    return halves_of(four, scale_, origin);
  }

 private:
  const float* origin_;
  float scale_;
  int cols_;
  bool subtracts_;
};

// Any code.
class AnyDecoder {
 public:
  static constexpr bool kHasTable = false;
  struct Held {
    const uint8_t* code;
  };

  __device__ explicit AnyDecoder(const DecoderInput& input)
      : codec_(input.lists.codec), origin_(input.origin), scale_(input.scale), subtracts_(input.lists.subtracts()) {}

  __device__ Held hold(const uint8_t* code) const { return {code}; }

  __device__ bool full() const { return false; }

  template <bool kFull>
  __device__ uint2 four(const Held& held, int step) const {
    const uint8_t* const code = held.code;
    const int first = 16 * step + static_cast<int>(threadIdx.x) % 4 * 4;
    if (first >= codec_.format.cols) return {0, 0};
    const float4 none = {0, 0, 0, 0};
    return halves_of(decode_four(codec_, code, first), scale_,
                     subtracts_ ? *reinterpret_cast<const float4*>(origin_ + first) : none);
  }

 private:
  const CodecView& codec_;
  const float* origin_;
  float scale_;
  bool subtracts_;
};

}  // namespace kith
