// The canonical key of a query and a stored vector of a list, decoded as it is read, by four threads: four lanes of the
// canonical sum each.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/decode_four_cuda.hpp"
#include "ivf/segment/device_lists_cuda.hpp"
#include "kernels/distance/row_threads_cuda.hpp"
#include "kernels/rerank/candidate_key_cuda.hpp"

#include <cstdint>

namespace kith {

KITH_HOST_DEVICE inline int64_t padded_cols(int64_t cols) {
  return (cols + kCanonicalLanes - 1) / kCanonicalLanes * kCanonicalLanes;
}

// Who works on a query together.
struct BlockThreads {
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int threads() { return static_cast<int>(blockDim.x); }
  __device__ static void sync() { __syncthreads(); }
};
struct WarpThreads {
  __device__ static int thread() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int threads() { return 32; }
  __device__ static void sync() { __syncwarp(); }
};

// A query in shared memory as doubles, for cosine of length 1; zeros past its columns. Returns what keys want of it:
// cosine's inverse norm, or the squared norm where codes hold norms. All of the threads.
template <typename Threads = BlockThreads>
__device__ inline double load_query(const DeviceListsView& lists, const float* values, double* query) {
  const auto cols = static_cast<int>(lists.codec.format.cols);
  for (int col = Threads::thread(); col < padded_cols(cols); col += Threads::threads()) {
    query[col] = col < cols ? static_cast<double>(values[col]) : 0.0;
  }
  Threads::sync();
  const bool by_norm = lists.key().by_norm;
  if (lists.kind != KeyKind::cosine && !by_norm) return 1;
  // Four threads after the canonical order, in every warp.
  double lanes[kRowThreadLanes] = {};
  for (int first = static_cast<int>(threadIdx.x) % kRowThreads * kRowThreadLanes; first < cols;
       first += kCanonicalLanes) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) lanes[i] = fma(query[first + i], query[first + i], lanes[i]);
  }
  const double square = __shfl_sync(0xFFFFFFFFu, join_row_threads(lanes, row_threads()), 0);
  if (by_norm) return square;
  const double inverse = canonical_inverse_norm(square);
  Threads::sync();
  for (int col = Threads::thread(); col < cols; col += Threads::threads()) query[col] *= inverse;
  Threads::sync();
  return inverse;
}

// How a stored vector's columns are read, four at a time: four(code, first column), or where a reader has a Batch,
// which is read ahead of kBatch groups of 16 columns, four(batch, group, first column).
inline constexpr int kBatch = 4;

class AnyReader {
 public:
  __device__ explicit AnyReader(const DeviceListsView& lists) : codec_(lists.codec) {}
  __device__ FourFloats four(const uint8_t* code, int first) const { return decode_four(codec_, code, first); }

 private:
  const CodecView& codec_;
};

// Codes of 8 bits for sub-vectors of a multiple of four columns, fewer than 256 times four in all. Of sub-vectors that
// divide 16 columns a batch's numbers are one load.
class CodewordReader {
 public:
  struct Batch {
    uint32_t numbers[kBatch];
  };

  __device__ explicit CodewordReader(const DeviceListsView& lists)
      : codewords_(vectors<float4>(lists.codec.codewords)),
        cols_(static_cast<int>(lists.codec.format.cols)),
        fours_(static_cast<int>(lists.codec.format.part_cols()) / 4),
        inverse_((65536 + fours_ - 1) / fours_),
        whole_(cols_ % (kBatch * kCanonicalLanes) == 0 && reinterpret_cast<uintptr_t>(lists.codes) % 16 == 0) {}

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
  __device__ int part_of(int unit) const { return unit * inverse_ >> 16; }

  const float4* codewords_;
  int cols_;
  int fours_;
  int inverse_;
  bool whole_;
};

// The same for sub-vectors of two columns; a multiple of four in all.
class PairReader {
 public:
  __device__ explicit PairReader(const DeviceListsView& lists) : codewords_(vectors<float2>(lists.codec.codewords)) {}

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

// Sums of codewords of 8 bits each; a multiple of four columns. A batch is added up book by book, so that its numbers
// are read once and loads of many codewords are under way together.
class SumReader {
 public:
  struct Batch {
    FourFloats fours[kBatch];
  };

  __device__ explicit SumReader(const DeviceListsView& lists)
      : codewords_(vectors<float4>(lists.codec.codewords)),
        cols_(static_cast<int>(lists.codec.format.cols)),
        books_(static_cast<int>(lists.codec.format.parts)) {}

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

// f32 as stored; a multiple of four columns.
class FloatReader {
 public:
  __device__ explicit FloatReader(const DeviceListsView&) {}
  __device__ FourFloats four(const uint8_t* code, int first) const {
    const float4 values = vectors<float4>(code)[first / 4];
    return {{values.x, values.y, values.z, values.w}};
  }
};

// f16 as stored; a multiple of four columns.
class HalfReader {
 public:
  __device__ explicit HalfReader(const DeviceListsView&) {}
  __device__ FourFloats four(const uint8_t* code, int first) const {
    return floats_of(vectors<uint2>(code)[first / 4]);
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

// Calls use(first column, four columns of the stored vector) for the columns of this thread's lanes.
template <typename Reader, typename Use>
__device__ inline void for_stored(const DeviceListsView& lists, const Reader& reader, const uint8_t* code,
                                  const float* centre, const Use& use) {
  constexpr int kAhead = kBatch;  // loads that are under way at a time
  const auto cols = static_cast<int>(lists.codec.format.cols);
  const bool centred = lists.residual && centre != nullptr;
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
        if (whole) {
          const float4 four = load_vector<float4>(centre + first);
          centres[ahead] = {{four.x, four.y, four.z, four.w}};
        } else {
          KITH_UNROLL
          for (int i = 0; i < 4; ++i) {
            if (first + i < cols) centres[ahead].values[i] = centre[first + i];
          }
        }
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

// The lanes of the squared distance where the columns are whole batches, which spares every test: most time of a search
// that has few candidates goes here. `query` lies at a multiple of 16 bytes.
template <typename Reader>
__device__ inline void add_whole_squares(const DeviceListsView& lists, const Reader& reader, const double* query,
                                         const uint8_t* code, const float* centre, double (&lanes)[kRowThreadLanes]) {
  const auto cols = static_cast<int>(lists.codec.format.cols);
  const bool centred = lists.residual && centre != nullptr;
  for (int start = static_cast<int>(threadIdx.x) % kRowThreads * kRowThreadLanes; start < cols;
       start += kBatch * kCanonicalLanes) {
    const auto batch = read_ahead(reader, code, start);
    FourFloats fours[kBatch];
    KITH_UNROLL
    for (int i = 0; i < kBatch; ++i) fours[i] = read_four(reader, batch, i, start + i * kCanonicalLanes);
    if (centred) {
      float4 centres[kBatch];
      KITH_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        centres[i] = load_vector<float4>(centre + start + i * kCanonicalLanes);
      }
      KITH_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        fours[i] = {{__fadd_rn(centres[i].x, fours[i].values[0]), __fadd_rn(centres[i].y, fours[i].values[1]),
                     __fadd_rn(centres[i].z, fours[i].values[2]), __fadd_rn(centres[i].w, fours[i].values[3])}};
      }
    }
    KITH_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      const auto* const pairs = vectors<double2>(query + start + i * kCanonicalLanes);
      const double2 low = pairs[0];
      const double2 high = pairs[1];
      const double differences[4] = {low.x - fours[i].values[0], low.y - fours[i].values[1],
                                     high.x - fours[i].values[2], high.y - fours[i].values[3]};
      KITH_UNROLL
      for (int lane = 0; lane < kRowThreadLanes; ++lane) {
        lanes[lane] = fma(differences[lane], differences[lane], lanes[lane]);
      }
    }
  }
}

// The canonical key of one stored vector, right in the first of the four threads that share it: of its code and its
// list's centre, or none.
template <typename Reader>
__device__ inline float code_key(const DeviceListsView& lists, const Reader& reader, const double* query,
                                 double inverse_q, const uint8_t* code, const float* centre) {
  const unsigned threads = row_threads();
  double inverse_x = 1;
  if (lists.kind == KeyKind::cosine) {
    double lanes[kRowThreadLanes] = {};
    for_stored(lists, reader, code, centre, [&](int, const FourFloats& four) {
      KITH_UNROLL
      for (int i = 0; i < kRowThreadLanes; ++i) {
        const double x = four.values[i];
        lanes[i] = fma(x, x, lanes[i]);
      }
    });
    const double square = join_row_threads(lanes, threads);
    inverse_x = canonical_inverse_norm(__shfl_sync(threads, square, 0, kRowThreads));
  }
  double lanes[kRowThreadLanes] = {};
  const bool by_norm = lists.key().by_norm;
  const bool product = lists.kind == KeyKind::inner_product || by_norm;
  const bool whole = lists.codec.format.cols % (kBatch * kCanonicalLanes) == 0;
  if (whole && !product && has_differences(lists.kind)) {
    add_whole_squares(lists, reader, query, code, centre, lanes);
    return candidate_key(lists.kind, join_row_threads(lanes, threads), inverse_q, inverse_x);
  }
  for_stored(lists, reader, code, centre, [&](int first, const FourFloats& four) {
    KITH_UNROLL
    for (int i = 0; i < kRowThreadLanes; ++i) {
      const double x = four.values[i];
      if (product) {
        lanes[i] = fma(query[first + i], x, lanes[i]);
      } else {
        const double difference = query[first + i] - x * inverse_x;
        lanes[i] = fma(difference, difference, lanes[i]);
      }
    }
  });
  const double sum = join_row_threads(lanes, threads);
  if (by_norm) return norm_key(lists.kind, inverse_q, sum, code_norm(lists.codec, code));
  return candidate_key(lists.kind, sum, inverse_q, inverse_x);
}

// The same of a vector of the lists.
template <typename Reader>
__device__ inline float stored_key(const DeviceListsView& lists, const Reader& reader, const double* query,
                                   double inverse_q, int64_t code_bytes, uint32_t position, uint32_t list) {
  const float* const centre =
      lists.centres == nullptr ? nullptr : lists.centres + static_cast<int64_t>(list) * lists.codec.format.cols;
  return code_key(lists, reader, query, inverse_q, lists.codes + position * code_bytes, centre);
}

// Calls use(ReaderTag<Reader>()) with the quickest reader of such codes.
template <typename Reader>
struct ReaderTag {
  using type = Reader;
};
template <typename Use>
void visit_reader(const CodeFormat& format, const Use& use) {
  if (format.kind == CodeKind::product && format.bits == 8 && format.part_cols() % 4 == 0 && format.cols <= 1024) {
    use(ReaderTag<CodewordReader>());
  } else if (format.kind == CodeKind::product && format.bits == 8 && format.part_cols() == 2 && format.cols % 4 == 0) {
    use(ReaderTag<PairReader>());
  } else if (format.kind == CodeKind::additive && format.bits == 8 && format.cols % 4 == 0) {
    use(ReaderTag<SumReader>());
  } else if (format.kind == CodeKind::stored && format.dtype == DType::f32 && format.cols % 4 == 0) {
    use(ReaderTag<FloatReader>());
  } else if (format.kind == CodeKind::stored && format.dtype == DType::f16 && format.cols % 4 == 0) {
    use(ReaderTag<HalfReader>());
  } else {
    use(ReaderTag<AnyReader>());
  }
}

}  // namespace kith
