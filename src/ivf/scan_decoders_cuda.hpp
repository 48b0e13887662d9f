// How the scan of lists reads codes: four neighbouring columns of a vector as halves, by one thread. A codec is one of
// these, or the general one.
#pragma once

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

// Codes of 8 bits for sub-vectors of a multiple of four columns, from a table in shared memory.
class CodewordDecoder {
 public:
  static constexpr bool kHasTable = true;

  __device__ explicit CodewordDecoder(const DecoderInput& input)
      : table_(input.table),
        cols_(static_cast<int>(input.lists.codec.format.cols)),
        fours_(static_cast<int>(input.lists.codec.format.part_cols()) / 4),
        inverse_((65536 + fours_ - 1) / fours_) {}

  __device__ uint2 four(const uint8_t* code, int first) const {
    if (first >= cols_) return {0, 0};
    const int unit = first / 4;
    const int part = unit * inverse_ >> 16;  // right for fewer than 256 units
    const int inside = unit - part * fours_;
    const int entry = (part * 256 + code[part]) * fours_ + inside;
    return *reinterpret_cast<const uint2*>(table_ + entry * 8);
  }

 private:
  const std::byte* table_;
  int cols_;
  int fours_;
  int inverse_;
};

// f32 or f16 as stored; a multiple of four columns.
template <typename Value>
class StoredDecoder {
 public:
  static constexpr bool kHasTable = false;

  __device__ explicit StoredDecoder(const DecoderInput& input)
      : origin_(input.origin),
        scale_(input.scale),
        cols_(static_cast<int>(input.lists.codec.format.cols)),
        subtracts_(input.lists.subtracts()) {}

  __device__ uint2 four(const uint8_t* code, int first) const {
    if (first >= cols_) return {0, 0};
    FourFloats four;
    if constexpr (sizeof(Value) == 4) {
      const float4 loaded = __ldcs(reinterpret_cast<const float4*>(code) + first / 4);
      four = {{loaded.x, loaded.y, loaded.z, loaded.w}};
    } else {
      four = floats_of(__ldcs(reinterpret_cast<const uint2*>(code) + first / 4));
    }
    const float4 none = {0, 0, 0, 0};
    return halves_of(four, scale_, subtracts_ ? *reinterpret_cast<const float4*>(origin_ + first) : none);
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

  __device__ explicit AnyDecoder(const DecoderInput& input)
      : codec_(input.lists.codec), origin_(input.origin), scale_(input.scale), subtracts_(input.lists.subtracts()) {}

  __device__ uint2 four(const uint8_t* code, int first) const {
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
