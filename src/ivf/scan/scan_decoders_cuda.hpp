// How the scan of lists reads codes: four neighbouring columns of a vector as halves, by one thread, which has a unit
// of every step of 16 columns (scan_cut.hpp). A codec is one of these, or the general one. hold() is called for a
// vector ahead of its use; four() has no branch where all columns of the steps are there, so that loads go together.
#pragma once

#include "cuda/ptx.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/scan_cut.hpp"
#include "ivf/segment/device_lists_cuda.hpp"
#include "kernels/codes/code_reader_cuda.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace kith {

// What every decoder is made from. `origin` is zero where nothing is to be subtracted.
struct DecoderInput {
  const DeviceListsView& lists;
  const PreparedLists& prepared;
  float scale;
  const float* origin;     // in shared memory, scaled, padded with zeros to a multiple of 16 columns
  const std::byte* table;  // in shared memory: the codewords' halves
};

// What the scans ask of a decoder, as it is for most.
struct DecoderTraits {
  static constexpr bool kHasTable = false;  // of the codewords' halves in shared memory
  static constexpr bool kStaged = false;    // codes come from a copy in shared memory,
  static constexpr int kStages = 0;         // number of stages,
  static constexpr bool kPaired = false;    // and two steps are read at a time
  static constexpr bool kAlwaysFull = false;
  static constexpr int kFixedBytes = 0;
};

// Byte `number` of a word.
__device__ inline uint32_t byte_of(uint32_t word, int number) {
  return __byte_perm(word, 0, 0x4440u + static_cast<unsigned>(number));
}

// Codes of 8 bits for sub-vectors of a multiple of four columns, from a table in shared memory. Of a code a thread
// holds the bytes that it needs, one for each step of 16 columns: they are asked for before the vectors of the tile
// before are multiplied. kCodeBytes is that of codes of 128 columns that have a way of their own (8 or 32), or 0.
template <int kCodeBytes>
class WordDecoder : public DecoderTraits {
 public:
  static constexpr bool kHasTable = true;
  static constexpr bool kAlwaysFull = kCodeBytes != 0;
  static constexpr int kFixedBytes = kCodeBytes;
  struct Held {
    uint2 bytes;
  };

  __device__ explicit WordDecoder(const DecoderInput& input)
      : table_(ptx::shared_address(input.table) + threadIdx.x % 4 * 8),
        cols_(static_cast<int>(input.lists.codec.format.cols)),
        fours_(static_cast<int>(input.lists.codec.format.part_cols()) / 4),
        apart_(unit_order(input.lists.codec.format) == UnitOrder::apart) {
    ptx::keep_whole(table_);
  }

  __device__ Held hold(const uint8_t* code) const {
    const unsigned quarter = threadIdx.x % 4;
    if (kCodeBytes == 8) return {__ldg(vectors<uint2>(code))};
    if (kCodeBytes == 32 || apart_) return {__ldg(vectors<uint2>(code) + quarter)};
    Held held{{0, 0}};
    const int inverse = (65536 + fours_ - 1) / fours_;
    const bool words = fours_ == 1 && cols_ % 16 == 0;  // a step's four bytes
    KITH_UNROLL
    for (int step = 0; step < kNarrowSteps; ++step) {
      uint32_t byte = 0;
      const int unit = 4 * step + static_cast<int>(quarter);
      if (4 * unit < cols_) {
        byte = words ? __ldg(vectors<uint32_t>(code) + step) >> (8 * quarter) & 255u
                     : code[unit * inverse >> 16];  // right for fewer than 256 units
      }
      (step < 4 ? held.bytes.x : held.bytes.y) |= byte << (8 * (step % 4));
    }
    return held;
  }

  __device__ bool full(int steps) const { return kAlwaysFull || cols_ == steps * 16; }

  template <bool kFull>
  __device__ uint2 four(const Held& held, int step) const {
    if (!kFull && 4 * (4 * step + static_cast<int>(threadIdx.x) % 4) >= cols_) return {0, 0};
    const uint32_t number = byte_of(step < 4 ? held.bytes.x : held.bytes.y, step % 4);
    return ptx::load_constant_8(table_ + number * 32 + static_cast<uint32_t>(step * kTableStepBytes));
  }

 private:
  uint32_t table_;
  int cols_;
  int fours_;
  bool apart_;
};

// The same for sub-vectors of two columns.
class PairDecoder : public DecoderTraits {
 public:
  static constexpr bool kHasTable = true;
  struct Held {
    uint4 bytes;
  };

  __device__ explicit PairDecoder(const DecoderInput& input)
      : table_(ptx::shared_address(input.table) + threadIdx.x % 4 * 8),
        parts_(static_cast<int>(input.lists.codec.format.parts)),
        apart_(unit_order(input.lists.codec.format) == UnitOrder::apart) {
    ptx::keep_whole(table_);
  }

  __device__ Held hold(const uint8_t* code) const {
    const unsigned quarter = threadIdx.x % 4;
    if (apart_) return {__ldg(vectors<uint4>(code) + quarter)};
    uint32_t words[4] = {0, 0, 0, 0};
    KITH_UNROLL
    for (int i = 0; i < 2 * kNarrowSteps; ++i) {
      const int part = 2 * (i / 2 * 4 + static_cast<int>(quarter)) + i % 2;
      if (part < parts_) words[i / 4] |= static_cast<uint32_t>(code[part]) << (8 * (i % 4));
    }
    return {{words[0], words[1], words[2], words[3]}};
  }

  __device__ bool full(int steps) const { return parts_ == steps * 8; }

  template <bool kFull>
  __device__ uint2 four(const Held& held, int step) const {
    const uint32_t word = step < 2 ? held.bytes.x : step < 4 ? held.bytes.y : step < 6 ? held.bytes.z : held.bytes.w;
    const uint32_t at = table_ + static_cast<uint32_t>(step * kTableStepBytes);
    const int part = 2 * (4 * step + static_cast<int>(threadIdx.x) % 4);
    uint2 halves = {0, 0};
    if (kFull || part < parts_) halves.x = ptx::load_constant_4(at + byte_of(word, step % 2 * 2) * 32);
    if (kFull || part + 1 < parts_) halves.y = ptx::load_constant_4(at + byte_of(word, step % 2 * 2 + 1) * 32 + 4);
    return halves;
  }

 private:
  uint32_t table_;
  int parts_;
  bool apart_;
};

// The same for sub-vectors of three columns: four columns begin in one of them and end in the next.
class TripleDecoder : public DecoderTraits {
 public:
  static constexpr bool kHasTable = true;
  struct Held {
    uint4 bytes;
  };

  __device__ explicit TripleDecoder(const DecoderInput& input)
      : table_(ptx::shared_address(input.table) + threadIdx.x % 4 * 8),
        cols_(static_cast<int>(input.lists.codec.format.cols)) {
    ptx::keep_whole(table_);
  }

  // The two sub-codes of this thread's unit of each step.
  __device__ Held hold(const uint8_t* code) const {
    uint32_t words[4] = {0, 0, 0, 0};
    KITH_UNROLL
    for (int i = 0; i < 2 * kNarrowSteps; ++i) {
      const int first = 4 * (i / 2 * 4 + static_cast<int>(threadIdx.x) % 4);
      if (first < cols_) words[i / 4] |= static_cast<uint32_t>(code[first / 3 + i % 2]) << (8 * (i % 4));
    }
    return {{words[0], words[1], words[2], words[3]}};
  }

  __device__ bool full(int steps) const { return cols_ == steps * 16; }

  template <bool kFull>
  __device__ uint2 four(const Held& held, int step) const {
    const int unit = 4 * step + static_cast<int>(threadIdx.x) % 4;
    if (!kFull && 4 * unit >= cols_) return {0, 0};
    const uint32_t word = step < 2 ? held.bytes.x : step < 4 ? held.bytes.y : step < 6 ? held.bytes.z : held.bytes.w;
    const uint32_t at = table_ + static_cast<uint32_t>(step * kTableStepBytes);
    const uint2 one = ptx::load_constant_8(at + byte_of(word, step % 2 * 2) * 32);
    const uint2 next = ptx::load_constant_8(at + byte_of(word, step % 2 * 2 + 1) * 32);
    const int inside = unit % 3;  // of the first sub-vector: it has 3 - inside of the four columns
    constexpr unsigned kFirst = 0x3210;
    constexpr unsigned kLowOfFirst = 0x7610;
    constexpr unsigned kSecond = 0x7654;
    return {__byte_perm(one.x, next.x, inside == 2 ? kLowOfFirst : kFirst),
            __byte_perm(one.y, next.y, inside == 0 ? kLowOfFirst : kSecond)};
  }

 private:
  uint32_t table_;
  int cols_;
};

// A half that is ready for the matrix units (PreparedLists::halves).
struct PreparedHalf {
  uint16_t bits;
};

// Halves that were prepared, of any number of columns.
class PreparedDecoder : public DecoderTraits {
 public:
  struct Held {
    const uint8_t* code;
  };

  __device__ explicit PreparedDecoder(const DecoderInput& input)
      : cols_(static_cast<int>(input.lists.codec.format.cols)) {}

  // Vectors are on their way to the second-level cache while those of the tile before are multiplied.
  __device__ Held hold(const uint8_t* code) const {
    const unsigned line = threadIdx.x % 4 * 128;
    if (line < cols_ * sizeof(PreparedHalf)) ptx::prefetch(code + line);
    return {code};
  }

  __device__ bool full(int steps) const { return cols_ == steps * 16; }

  template <bool kFull>
  __device__ uint2 four(const Held& held, int step) const {
    const int first = 16 * step + static_cast<int>(threadIdx.x) % 4 * 4;
    if (!kFull && first >= cols_) return {0, 0};
    return __ldcs(vectors<uint2>(held.code) + first / 4);
  }

 private:
  int cols_;
};

// What a reader of codes gives, minus the origin. kValueBytes: of values that are stored as they are, a multiple of
// four columns; 0: any code.
template <typename Reader, int kValueBytes = 0>
class HalvesDecoder : public DecoderTraits {
 public:
  struct Held {
    const uint8_t* code;
  };

  __device__ explicit HalvesDecoder(const DecoderInput& input)
      : reader_(input.lists.codec, input.lists.codes),
        origin_(input.origin),
        scale_(input.scale),
        cols_(static_cast<int>(input.lists.codec.format.cols)),
        subtracts_(input.lists.subtracts()) {}

  // As PreparedDecoder's.
  __device__ Held hold(const uint8_t* code) const {
    const unsigned line = threadIdx.x % 4 * 128;
    if (kValueBytes > 0 && line < cols_ * kValueBytes) ptx::prefetch(code + line);
    return {code};
  }

  __device__ bool full(int steps) const { return kValueBytes > 0 && cols_ == steps * 16; }

  template <bool kFull>
  __device__ uint2 four(const Held& held, int step) const {
    const int first = 16 * step + static_cast<int>(threadIdx.x) % 4 * 4;
    if (!kFull && first >= cols_) return {0, 0};
    const FourFloats four = reader_.four(held.code, first);
    float4 origin = {0, 0, 0, 0};
    if (kValueBytes > 0 || subtracts_) origin = load_vector<float4>(origin_ + first);  // no branch beside quick loads
    if (!subtracts_) origin = {0, 0, 0, 0};
    return halves_of(four, scale_, origin);
  }

 private:
  Reader reader_;
  const float* origin_;
  float scale_;
  int cols_;
  bool subtracts_;
};
using AnyDecoder = HalvesDecoder<AnyReader>;

// Stored or prepared values from a copy in shared memory, which the copy engine makes while other vectors are
// multiplied: rows of a multiple of 16 bytes.
template <typename Value>
class StagedDecoder : public DecoderTraits {
 public:
  static constexpr bool kStaged = true;
  static constexpr bool kPaired = sizeof(Value) == 2;  // sixteen bytes at a time either way
  static constexpr int kStages = sizeof(Value) == 4 ? 1 : 2;
  struct Held {
    const uint8_t* code;
  };

  __device__ explicit StagedDecoder(const DecoderInput& input)
      : origin_(input.origin),
        scale_(input.scale),
        cols_(static_cast<int>(input.lists.codec.format.cols)),
        subtracts_(input.lists.subtracts()) {}

  __device__ Held hold(const uint8_t* code) const { return {code}; }
  __device__ bool full(int steps) const { return cols_ == steps * 16; }

  template <bool kFull>
  __device__ uint2 four(const Held& held, int step) const {
    const int first = 16 * step + static_cast<int>(threadIdx.x) % 4 * 4;
    if (!kFull && first >= cols_) return {0, 0};
    const float4 loaded = load_vector<float4>(held.code + first * 4);
    return rounded({{loaded.x, loaded.y, loaded.z, loaded.w}}, first);
  }
  // Decodes an even step and the next.
  template <bool kFull>
  __device__ void two(const Held& held, int step, uint2 (&halves)[2]) const {
    const int first = 16 * step + static_cast<int>(threadIdx.x) % 4 * 8;
    halves[0] = halves[1] = {0, 0};
    if (!kFull && first >= cols_) return;
    const uint4 loaded = load_vector<uint4>(held.code + first * 2);
    if constexpr (std::is_same_v<Value, PreparedHalf>) {
      halves[0] = {loaded.x, loaded.y};
      halves[1] = {loaded.z, loaded.w};
    } else {
      halves[0] = rounded(floats_of({loaded.x, loaded.y}), first);
      halves[1] = rounded(floats_of({loaded.z, loaded.w}), first + 4);
    }
  }

 private:
  __device__ uint2 rounded(const FourFloats& four, int first) const {
    float4 origin = {0, 0, 0, 0};
    if (subtracts_) origin = load_vector<float4>(origin_ + first);
    return halves_of(four, scale_, origin);
  }

  const float* origin_;
  float scale_;
  int cols_;
  bool subtracts_;
};

// Calls use(DecoderTag<Decoder>()) with the quickest decoder of such codes, of up to 128 columns.
template <typename Decoder>
struct DecoderTag {
  using type = Decoder;
};
template <typename Use>
void visit_scan_decoder(const CodeFormat& format, bool has_halves, const Use& use) {
  if (has_halves) return use(DecoderTag<PreparedDecoder>());
  if (has_half_table(format)) {
    if (format.part_cols() == 2) return use(DecoderTag<PairDecoder>());
    if (format.part_cols() == 3) return use(DecoderTag<TripleDecoder>());
    return use(DecoderTag<WordDecoder<0>>());
  }
  if (format.stores_values() && format.cols % 4 == 0) {
    if (format.dtype == DType::f32) return use(DecoderTag<HalvesDecoder<StoredReader<float, true>, 4>>());
    if (format.dtype == DType::f16) return use(DecoderTag<HalvesDecoder<StoredReader<Half, true>, 2>>());
  }
  use(DecoderTag<AnyDecoder>());
}

// The codes of a thread's kRows vectors of a tile, eight apart.
template <typename Decoder, int kRows>
struct HeldCodes {
  typename Decoder::Held codes[kRows];

  // As the matrix units want them: rows i and i + 1 of a pair in turn.
  template <bool kFull>
  __device__ void decode(const Decoder& decoder, int step, uint32_t (&vectors)[kRows / 2][4]) const {
    KITH_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const uint2 halves = decoder.template four<kFull>(codes[i], step);
      vectors[i / 2][i % 2] = halves.x;
      vectors[i / 2][2 + i % 2] = halves.y;
    }
  }
  template <bool kFull, int kSteps>
  __device__ void decode_all(const Decoder& decoder, uint32_t (&vectors)[kSteps][kRows / 2][4]) const {
    if constexpr (Decoder::kPaired) {
      KITH_UNROLL
      for (int step = 0; step < kSteps; step += 2) {
        KITH_UNROLL
        for (int i = 0; i < kRows; ++i) {
          uint2 halves[2];
          decoder.template two<kFull>(codes[i], step, halves);
          KITH_UNROLL
          for (int j = 0; j < 2; ++j) {
            vectors[step + j][i / 2][i % 2] = halves[j].x;
            vectors[step + j][i / 2][2 + i % 2] = halves[j].y;
          }
        }
      }
    } else {
      KITH_UNROLL
      for (int step = 0; step < kSteps; ++step) decode<kFull>(decoder, step, vectors[step]);
    }
  }
};

}  // namespace kith
