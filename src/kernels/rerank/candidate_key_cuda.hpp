// The canonical key of a candidate, a row or a code that is decoded as it is read, computed by four threads: four lanes
// of the canonical sum each.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "kernels/codes/code_norm.hpp"
#include "kernels/codes/code_reader_cuda.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/row_sum_cuda.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace kith {

// row_sum() of bytes, all sixteen bytes of a thread in one load. The canonical sum of whole numbers is exact, so theirs
// is the same whatever the order. Rows lie at multiples of 16 bytes and have a multiple of 16 columns.
template <bool kProduct, typename X>
__device__ inline double byte_row_sum(const uint32_t* query, const X* row, int64_t cols) {
  using Word = std::conditional_t<std::is_signed_v<X>, int, unsigned>;  // operand type for four bytes
  const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
  int64_t sum = 0;
  for (int64_t first = 16 * thread; first < cols; first += 16 * kRowThreads) {
    const auto unit = load_vector<uint4>(row + first);
    const auto with = load_vector<uint4>(query + first / 4);
    const uint32_t x[4] = {unit.x, unit.y, unit.z, unit.w};
    const uint32_t q[4] = {with.x, with.y, with.z, with.w};
    Word products = 0;
    Word squares = 0;
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      const auto a = static_cast<Word>(x[i]);
      const auto b = static_cast<Word>(q[i]);
      products = __dp4a(a, b, products);
      if (!kProduct) squares = __dp4a(a, a, __dp4a(b, b, squares));
    }
    sum +=
        kProduct ? static_cast<int64_t>(products) : static_cast<int64_t>(squares) - 2 * static_cast<int64_t>(products);
  }
  return static_cast<double>(warp_sum<kRowThreads>(sum, row_threads()));
}

__device__ inline float candidate_key(KeyKind kind, double sum, double inverse_q, double inverse_x) {
  switch (kind) {
    case KeyKind::inner_product: return canonical_key<KeyKind::inner_product>(sum, 0, 0);
    case KeyKind::cosine: return canonical_key<KeyKind::cosine>(sum, inverse_q, inverse_x);
    case KeyKind::l2: return canonical_key<KeyKind::l2>(sum, 0, 0);
    default: return canonical_key<KeyKind::squared_l2>(sum, 0, 0);
  }
}

// Device pointers needed for the keys of queries and codes.
struct CodeKeys {
  const CodecView& codec;
  KeyKind kind;

  __device__ bool by_norm() const { return has_norm_keys(codec.format, kind); }
};

// The group of threads that works on a query.
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

// Stages a query in shared memory as doubles, scaled to length 1 for cosine and zero-padded. Returns what keys need:
// the inverse norm for cosine, the squared norm if codes hold norms. Called by all threads.
template <typename Threads = BlockThreads>
__device__ inline double load_query(const CodeKeys& keys, const float* values, double* query) {
  const auto cols = static_cast<int>(keys.codec.format.cols);
  for (int col = Threads::thread(); col < padded_cols(cols); col += Threads::threads()) {
    query[col] = col < cols ? static_cast<double>(values[col]) : 0.0;
  }
  Threads::sync();
  const bool by_norm = keys.by_norm();
  if (keys.kind != KeyKind::cosine && !by_norm) return 1;
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

// Lanes of the squared distance for whole batches of columns, without bounds checks: a search with few candidates
// spends most of its time here. `query` is aligned to 16 bytes.
template <bool kUnit, typename Reader>
__device__ inline void add_whole_squares(const CodecView& codec, const Reader& reader, const double* query,
                                         double inverse_x, const uint8_t* code, const float* centre,
                                         double (&lanes)[kRowThreadLanes]) {
  const auto cols = static_cast<int>(codec.format.cols);
  const bool centred = centre != nullptr;
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
      const auto value = [&](int at) {
        return kUnit ? fours[i].values[at] * inverse_x : static_cast<double>(fours[i].values[at]);
      };
      const double differences[4] = {low.x - value(0), low.y - value(1), high.x - value(2), high.y - value(3)};
      KITH_UNROLL
      for (int lane = 0; lane < kRowThreadLanes; ++lane) {
        lanes[lane] = fma(differences[lane], differences[lane], lanes[lane]);
      }
    }
  }
}

// The canonical key of one code, right in the first of the four threads that share it. `centre`: what is added to the
// decoded code, or null. `known`: of cosine, the vector's inverse norm, or null.
template <typename Reader>
__device__ inline float code_key(const CodeKeys& keys, const Reader& reader, const double* query, double inverse_q,
                                 const uint8_t* code, const float* centre, const double* known = nullptr) {
  const unsigned threads = row_threads();
  double inverse_x = 1;
  if (known != nullptr) {
    inverse_x = *known;
  } else if (keys.kind == KeyKind::cosine) {
    double lanes[kRowThreadLanes] = {};
    for_stored(keys.codec, reader, code, centre, [&](int, const FourFloats& four) {
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
  const bool by_norm = keys.by_norm();
  const bool product = keys.kind == KeyKind::inner_product || by_norm;
  const bool whole = keys.codec.format.cols % (kBatch * kCanonicalLanes) == 0;
  if (whole && !product && (has_differences(keys.kind) || known != nullptr)) {
    if (known != nullptr) {
      add_whole_squares<true>(keys.codec, reader, query, inverse_x, code, centre, lanes);
    } else {
      add_whole_squares<false>(keys.codec, reader, query, 1, code, centre, lanes);
    }
    return candidate_key(keys.kind, join_row_threads(lanes, threads), inverse_q, inverse_x);
  }
  for_stored(keys.codec, reader, code, centre, [&](int first, const FourFloats& four) {
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
  if (by_norm) return norm_key(keys.kind, inverse_q, sum, code_norm(keys.codec, code));
  return candidate_key(keys.kind, sum, inverse_q, inverse_x);
}

}  // namespace kith
