// The epilogue that keeps, for every query, the rows that may be its nearest: up to three, and how near the next is.
//
// A thread looks at the least of its 32 columns of a tile; what lies above the query's limit is done with. The limit is
// the least value seen so far by the four threads that share the query, plus its slack: no row that is farther can be
// the nearest (candidate_window.hpp). With one row in a few tiles below it, this costs little more than the minima.
#pragma once

#include "kernels/product/product_epilogue_cuda.hpp"

#include <cstdint>

namespace kith {

class NearestEpilogue {
 public:
  using Target = ProductNearest;
  static constexpr int kSharedBytes = 0;  // for each warp

  __device__ NearestEpilogue(const Target& target, const ProductOperands&, std::byte*) : target_(target) {}

  __device__ void begin(int64_t first_query, const ThreadQueries& queries, int64_t first_row) {
    first_query_ = first_query;
    first_row_ = first_row;
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      in_tile_[q] = queries(q);
      const int64_t query = first_query + in_tile_[q];
      slack_[q] = query < target_.queries ? target_.slacks[query] : 0.0f;
      limit_[q] = query < target_.queries ? kFarthest : -kFarthest;
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) values_[q][i] = kFarthest;
      KITH_UNROLL
      for (int i = 0; i < 3; ++i) rows_[q][i] = kNoRow;
    }
  }

  __device__ void tile(const Slabs<float>& products, const float* terms, int tile) {
    float least[kThreadQueries];
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) least[q] = no_value(0.0f);
    least_of_tile(products, terms, least);
    bool found = false;
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      if (!(least[q] <= limit_[q])) continue;
      found = true;
      limit_[q] = fminf(limit_[q], least[q] + slack_[q]);
      uint32_t columns = columns_below(products[q / 2], q % 2, terms, limit_[q]);
      // All of them with the least one's value, which is no more than theirs: at worst too many are kept.
      while (columns != 0) {
        const int i = __ffs(static_cast<int>(columns)) - 1;
        columns &= columns - 1;
        insert(q, least[q],
               static_cast<uint32_t>(tile * kOperandTile + i / 2 * 8 + i % 2 + 2 * (static_cast<int>(threadIdx.x) % 4)));
      }
    }
    if (!__any_sync(0xFFFFFFFFu, found)) return;
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      KITH_UNROLL
      for (int apart = 1; apart <= 2; apart *= 2) {
        limit_[q] = fminf(limit_[q], __shfl_xor_sync(0xFFFFFFFFu, limit_[q], apart));
      }
    }
  }

  // The four threads that share a query put together what they have found.
  __device__ void end() {
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      KITH_UNROLL
      for (int apart = 1; apart <= 2; apart *= 2) {
        float values[4];
        uint32_t rows[3];
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) values[i] = __shfl_xor_sync(0xFFFFFFFFu, values_[q][i], apart);
        KITH_UNROLL
        for (int i = 0; i < 3; ++i) rows[i] = __shfl_xor_sync(0xFFFFFFFFu, rows_[q][i], apart);
        KITH_UNROLL
        for (int i = 0; i < 3; ++i) insert(q, values[i], rows[i]);
        values_[q][3] = fminf(values_[q][3], values[3]);
      }
      const int64_t query = first_query_ + in_tile_[q];
      if (threadIdx.x % 4 != 0 || query >= target_.queries) continue;
      const int64_t part = first_row_ / target_.rows_per_part;
      auto* const out = reinterpret_cast<float4*>(target_.found + part * target_.stride + query);
      out[0] = {values_[q][0], values_[q][1], values_[q][2], values_[q][3]};
      out[1] = {__uint_as_float(rows_[q][0]), __uint_as_float(rows_[q][1]), __uint_as_float(rows_[q][2]), 0.0f};
    }
  }

 private:
  static constexpr float kFarthest = 3e38f;
  static constexpr uint32_t kNoRow = 0xFFFFFFFFu;

  // A bit for each of the thread's 32 columns: the pair j of them at bits 2 j and 2 j + 1.
  static __device__ uint32_t columns_below(const float (&products)[kSlabValues], int half, const float* terms,
                                           float limit) {
    const int first_col = 2 * (static_cast<int>(threadIdx.x) % 4);
    uint32_t columns = 0;
    KITH_UNROLL
    for (int i = 0; i < kSlabValues / 2; ++i) {
      const float value = terms[8 * (i / 2) + i % 2 + first_col] + products[4 * (i / 2) + 2 * half + i % 2];
      if (value <= limit) columns |= 1u << i;
    }
    return columns;
  }

  __device__ void insert(int q, float value, uint32_t row) {
    const bool first = value < values_[q][0];
    const bool second = value < values_[q][1];
    const bool third = value < values_[q][2];
    values_[q][3] = third ? values_[q][2] : fminf(values_[q][3], value);
    values_[q][2] = second ? values_[q][1] : third ? value : values_[q][2];
    rows_[q][2] = second ? rows_[q][1] : third ? row : rows_[q][2];
    values_[q][1] = first ? values_[q][0] : second ? value : values_[q][1];
    rows_[q][1] = first ? rows_[q][0] : second ? row : rows_[q][1];
    values_[q][0] = first ? value : values_[q][0];
    rows_[q][0] = first ? row : rows_[q][0];
  }

  const Target& target_;
  int64_t first_query_ = 0;
  int64_t first_row_ = 0;
  int in_tile_[kThreadQueries];
  float slack_[kThreadQueries];
  float limit_[kThreadQueries];
  float values_[kThreadQueries][4];
  uint32_t rows_[kThreadQueries][3];
};

}  // namespace kith
