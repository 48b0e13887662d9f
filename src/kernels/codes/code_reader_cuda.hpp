// The readers of codes on a GPU: four neighbouring columns of a vector at a time, by one thread. Scans, re-ranking,
// refining and decoding read codes with these alone.
//
// A reader is made from a codec and the codes that it will read, all of which lie as the first of them does.
#pragma once

#include "core/half.hpp"
#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/codes/code_format.hpp"
#include "kernels/codes/own_code.hpp"
#include "kernels/distance/row_threads_cuda.hpp"

#include <cuda_fp16.h>

#include <cstdint>

namespace kith {

struct FourFloats {
  float values[4];
};

// Columns first .. first + 3 of a row anywhere in memory; zeros past the last one.
__device__ inline float4 four_columns(const float* row, int first, int cols) {
  float4 four = {0, 0, 0, 0};
  if (first < cols) four.x = row[first];
  if (first + 1 < cols) four.y = row[first + 1];
  if (first + 2 < cols) four.z = row[first + 2];
  if (first + 3 < cols) four.w = row[first + 3];
  return four;
}

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

// Any code. Columns past the last are zero; the first is a multiple of four.
__device__ inline FourFloats decode_four(const CodecView& codec, const uint8_t* code, int first) {
  const CodeFormat& format = codec.format;
  const int cols = static_cast<int>(format.cols);
  FourFloats four = {};
  if (first >= cols) return four;
  if (format.copies_codewords()) {
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
  if (format.adds_codewords()) return decode_four_additive(codec, code, first);
  if (is_own_code(format)) {
    OwnCodeReader(codec, code).four(first, four.values);
    return four;
  }
  if (format.stores_values() && format.dtype == DType::f32 && cols % 4 == 0) {
    const auto value = load_vector<float4>(code + 4 * static_cast<int64_t>(first));
    return {{value.x, value.y, value.z, value.w}};
  }
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int col = first + i;
    if (col >= cols) break;
    if (format.stores_values()) {
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

// How a stored vector's columns are read, four at a time: four(code, first column), or where a reader has a Batch,
// which is read ahead of kBatch groups of 16 columns, four(batch, group, first column).
inline constexpr int kBatch = 4;

class AnyReader {
 public:
  __device__ AnyReader(const CodecView& codec, const uint8_t*) : codec_(codec) {}
  __device__ FourFloats four(const uint8_t* code, int first) const { return decode_four(codec_, code, first); }

 private:
  const CodecView& codec_;
};

// Codes of 8 bits for sub-vectors of a multiple of four columns. Of sub-vectors that divide 16 columns a batch's
// numbers are one load.
class CodewordReader {
 public:
  struct Batch {
    uint32_t numbers[kBatch];
  };

  __device__ CodewordReader(const CodecView& codec, const uint8_t* codes)
      : codewords_(vectors<float4>(codec.codewords)),
        cols_(static_cast<int>(codec.format.cols)),
        fours_(static_cast<int>(codec.format.part_cols()) / 4),
        inverse_(0xFFFFFFFFu / static_cast<uint32_t>(fours_) + 1),
        whole_(cols_ % (kBatch * kCanonicalLanes) == 0 && reinterpret_cast<uintptr_t>(codes) % 16 == 0) {}

  // From this thread's column `start` on. Of 1, 2 or 4 units of a part the half is their logarithm.
  __device__ Batch batch(const uint8_t* code, int start) const {
    const int quarter = static_cast<int>(threadIdx.x) % kRowThreads;
    const uint8_t* const from = code + (start / (kBatch * kCanonicalLanes) * (kBatch * kRowThreads) >> (fours_ / 2));
    Batch batch = {};
    if (whole_ && fours_ == 1) {
      const uint4 words = load_vector<uint4>(from);
      batch = {{byte(words.x, quarter), byte(words.y, quarter), byte(words.z, quarter), byte(words.w, quarter)}};
    } else if (whole_ && fours_ == 2) {
      const uint2 words = load_vector<uint2>(from);
      const int half = quarter / 2;
      batch = {{byte(words.x, half), byte(words.x, 2 + half), byte(words.y, half), byte(words.y, 2 + half)}};
    } else if (whole_ && fours_ == 4) {
      const uint32_t word = load_vector<uint32_t>(from);
      batch = {{byte(word, 0), byte(word, 1), byte(word, 2), byte(word, 3)}};
    } else {
      KITH_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        const int first = start + i * kCanonicalLanes;
        if (first < cols_) batch.numbers[i] = code[part_of(first / 4)];
      }
    }
    return batch;
  }

  __device__ FourFloats four(const Batch& batch, int place, int first) const {
    const int unit = first / 4;
    const int part = part_of(unit);
    const auto number = static_cast<int>(batch.numbers[place]);
    const float4 word = codewords_[(part * 256 + number) * fours_ + unit - part * fours_];
    return {{word.x, word.y, word.z, word.w}};
  }

 private:
  __device__ static uint32_t byte(uint32_t word, int number) { return word >> (8 * number) & 255u; }
  // Right for fewer than 65,536 units; the inverse of one unit a part is 2^32, which is 0 here.
  __device__ int part_of(int unit) const {
    return inverse_ == 0 ? unit : static_cast<int>(__umulhi(static_cast<uint32_t>(unit), inverse_));
  }

  const float4* codewords_;
  int cols_;
  int fours_;
  uint32_t inverse_;
  bool whole_;
};

// The same for sub-vectors of two columns; a multiple of four in all.
class PairReader {
 public:
  __device__ PairReader(const CodecView& codec, const uint8_t*) : codewords_(vectors<float2>(codec.codewords)) {}

  __device__ FourFloats four(const uint8_t* code, int first) const {
    const int part = first / 2;
    const auto pair = load_vector<uchar2>(code + part);
    const float2 low = codewords_[part * 256 + pair.x];
    const float2 high = codewords_[(part + 1) * 256 + pair.y];
    return {{low.x, low.y, high.x, high.y}};
  }

 private:
  const float2* codewords_;
};

// The same for sub-vectors of three columns; a multiple of four in all. Four columns begin in one sub-vector and end in
// the next.
class TripleReader {
 public:
  __device__ TripleReader(const CodecView& codec, const uint8_t*) : codewords_(codec.codewords) {}

  __device__ FourFloats four(const uint8_t* code, int first) const {
    const auto part = static_cast<int>(static_cast<unsigned>(first) / 3u);
    const int inside = first - 3 * part;
    const float* const one = codewords_ + (part * 256 + code[part]) * 3 + inside;
    const float* const next = codewords_ + ((part + 1) * 256 + code[part + 1]) * 3 + inside - 3;
    return {{one[0], inside + 1 < 3 ? one[1] : next[1], inside + 2 < 3 ? one[2] : next[2], next[3]}};
  }

 private:
  const float* codewords_;
};

// Whether codes are TripleReader's.
inline bool has_triples(const CodeFormat& format) {
  return format.copies_codewords() && format.bits == 8 && format.cols == 3 * format.parts && format.cols % 4 == 0;
}

// Scalar codes of a byte a column; a multiple of four columns.
class ByteReader {
 public:
  __device__ ByteReader(const CodecView& codec, const uint8_t* codes)
      : codec_(codec), whole_(is_aligned(codes, 4) && is_aligned(codec.bases, 16) && is_aligned(codec.steps, 16)) {}

  __device__ FourFloats four(const uint8_t* code, int first) const {
    if (!whole_) return decode_four(codec_, code, first);
    const auto numbers = load_vector<uchar4>(code + first);
    const auto steps = load_vector<float4>(codec_.steps + first);
    const auto bases = load_vector<float4>(codec_.bases + first);
    return {
        {fmaf(static_cast<float>(numbers.x), steps.x, bases.x), fmaf(static_cast<float>(numbers.y), steps.y, bases.y),
         fmaf(static_cast<float>(numbers.z), steps.z, bases.z), fmaf(static_cast<float>(numbers.w), steps.w, bases.w)}};
  }

 private:
  const CodecView& codec_;
  bool whole_;
};

// Sums of codewords of 8 bits each; a multiple of four columns. A batch is added up book by book, so that its numbers
// are read once and loads of many codewords are under way together.
class SumReader {
 public:
  struct Batch {
    FourFloats fours[kBatch];
  };

  __device__ SumReader(const CodecView& codec, const uint8_t*)
      : codewords_(vectors<float4>(codec.codewords)),
        cols_(static_cast<int>(codec.format.cols)),
        books_(static_cast<int>(codec.format.parts)) {}

  __device__ Batch batch(const uint8_t* code, int start) const {
    const int fours = cols_ / 4;
    const float4* word = codewords_ + start / 4;
    float4 sums[kBatch] = {};
    load(word + code[0] * fours, start, sums);
#pragma unroll 4
    for (int book = 1; book < books_; ++book) {
      word += 256 * fours;
      float4 more[kBatch] = {};
      load(word + code[book] * fours, start, more);
      KITH_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        sums[i] = {__fadd_rn(sums[i].x, more[i].x), __fadd_rn(sums[i].y, more[i].y), __fadd_rn(sums[i].z, more[i].z),
                   __fadd_rn(sums[i].w, more[i].w)};
      }
    }
    Batch batch;
    KITH_UNROLL
    for (int i = 0; i < kBatch; ++i) batch.fours[i] = {{sums[i].x, sums[i].y, sums[i].z, sums[i].w}};
    return batch;
  }

  __device__ FourFloats four(const Batch& batch, int place, int) const { return batch.fours[place]; }

 private:
  __device__ void load(const float4* word, int start, float4 (&to)[kBatch]) const {
    constexpr int kApart = kCanonicalLanes / 4;
    KITH_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      if (start + i * kCanonicalLanes < cols_) to[i] = word[i * kApart];
    }
  }

  const float4* codewords_;
  int cols_;
  int books_;
};

// f32 or f16 as stored; a multiple of four columns. kOnce: what is read is not read again soon.
template <typename Value, bool kOnce = false>
class StoredReader {
 public:
  __device__ StoredReader(const CodecView&, const uint8_t*) {}
  __device__ FourFloats four(const uint8_t* code, int first) const {
    if constexpr (sizeof(Value) == 4) {
      const float4* const from = vectors<float4>(code) + first / 4;
      const float4 values = kOnce ? __ldcs(from) : *from;
      return {{values.x, values.y, values.z, values.w}};
    } else {
      const uint2* const from = vectors<uint2>(code) + first / 4;
      return floats_of(kOnce ? __ldcs(from) : *from);
    }
  }
};

template <typename Reader>
__device__ inline auto read_ahead(const Reader& reader, const uint8_t* code, int start) {
  if constexpr (requires { typename Reader::Batch; }) {
    return reader.batch(code, start);
  } else {
    return code;
  }
}
template <typename Reader, typename Batch>
__device__ inline FourFloats read_four(const Reader& reader, const Batch& batch, int group, int first) {
  if constexpr (requires { typename Reader::Batch; }) {
    return reader.four(batch, group, first);
  } else {
    return reader.four(batch, first);
  }
}

// Calls use(first column, four columns of the vector) for the columns of this thread's lanes. `centre`: what is added
// to the decoded code, or null.
template <typename Reader, typename Use>
__device__ inline void for_stored(const CodecView& codec, const Reader& reader, const uint8_t* code,
                                  const float* centre, const Use& use) {
  constexpr int kAhead = kBatch;  // loads that are under way at a time
  const auto cols = static_cast<int>(codec.format.cols);
  const bool centred = centre != nullptr;
  const bool whole = cols % 4 == 0;
  for (int start = static_cast<int>(threadIdx.x) % kRowThreads * kRowThreadLanes; start < cols;
       start += kAhead * kCanonicalLanes) {
    FourFloats fours[kAhead] = {};
    FourFloats centres[kAhead] = {};
    const auto batch = read_ahead(reader, code, start);
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      const int first = start + ahead * kCanonicalLanes;
      if (first < cols) fours[ahead] = read_four(reader, batch, ahead, first);
      if (centred && first < cols) {
        const float4 four = whole ? load_vector<float4>(centre + first) : four_columns(centre, first, cols);
        centres[ahead] = {{four.x, four.y, four.z, four.w}};
      }
    }
    KITH_UNROLL
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      const int first = start + ahead * kCanonicalLanes;
      if (first >= cols) break;
      if (centred) {
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) {
          if (first + i < cols) fours[ahead].values[i] = __fadd_rn(centres[ahead].values[i], fours[ahead].values[i]);
        }
      }
      use(first, fours[ahead]);
    }
  }
}

// Calls use(ReaderTag<Reader>()) with the quickest reader of such codes.
template <typename Reader>
struct ReaderTag {
  using type = Reader;
};
template <typename Use>
void visit_reader(const CodeFormat& format, const Use& use) {
  if (format.copies_codewords() && format.bits == 8 && format.part_cols() % 4 == 0) {
    use(ReaderTag<CodewordReader>());
  } else if (format.copies_codewords() && format.bits == 8 && format.part_cols() == 2 && format.cols % 4 == 0) {
    use(ReaderTag<PairReader>());
  } else if (has_triples(format)) {
    use(ReaderTag<TripleReader>());
  } else if (format.steps_columns() && format.bits == 8 && format.cols % 4 == 0) {
    use(ReaderTag<ByteReader>());
  } else if (format.adds_codewords() && format.bits == 8 && format.cols % 4 == 0) {
    use(ReaderTag<SumReader>());
  } else if (format.stores_values() && format.dtype == DType::f32 && format.cols % 4 == 0) {
    use(ReaderTag<StoredReader<float>>());
  } else if (format.stores_values() && format.dtype == DType::f16 && format.cols % 4 == 0) {
    use(ReaderTag<StoredReader<Half>>());
  } else {
    use(ReaderTag<AnyReader>());
  }
}

}  // namespace kith
