// The epilogue that keeps, for every query, up to three rows that may be its nearest, and the value of the next one.
//
// A thread finds the smallest of its 32 columns of a tile; if that is above the query's limit it is done. The limit is
// the given one, or a value seen so far by the four threads that share the query, plus the slack of the query and of
// that row (or the largest slack of the 32 columns): no farther row can be the nearest
// (kernels/assign/centre_window.hpp). With one row in several tiles below the limit, this costs little more than the
// minima. Found rows are stored in shared memory, since the products take most registers. Two groups of warps alternate
// between products and epilogue, so the epilogue is free only while it takes no longer than the products: work per
// found row matters.
#pragma once

#include "kernels/matrix/nearest_rows.hpp"
#include "kernels/matrix/product_epilogue_cuda.hpp"

#include <cstdint>

namespace kith {

class NearestEpilogue : public EpilogueTraits {
 public:
  using Target = ProductNearest;
  static constexpr int kKept = kNearestKept;
  static constexpr int kWords = 2 * kKept + 1;                           // values, the next value, rows
  static constexpr int kSharedBytes = kThreadQueries * kWords * 32 * 4;  // per warp

  __device__ NearestEpilogue(const Target& target, const ProductOperands&, std::byte* shared)
      : target_(target), mine_(vectors<float>(shared + threadIdx.x / 32 * kSharedBytes) + threadIdx.x % 32) {}

  __device__ void begin(int64_t first_query, const ThreadQueries& queries, int64_t first_row) {
    first_query_ = static_cast<uint32_t>(first_query) + static_cast<uint32_t>(queries(0));
    apart_ = queries.apart;
    part_ = static_cast<int>(first_row / target_.rows_per_part);
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      const bool real = query(q) < target_.queries;
      slack_[q] = real ? target_.slacks[query(q)] : 0.0f;
      limit_[q] = real ? target_.limits[query(q)] : -kFarthestValue;
      best_value_[q] = kFarthestValue;
      best_row_[q] = kNoNearest;
      KITH_UNROLL
      for (int i = 0; i <= kKept; ++i) value(q, i) = kFarthestValue;
      KITH_UNROLL
      for (int i = 0; i < kKept; ++i) row(q, i) = __uint_as_float(kNoNearest);
    }
  }

  __device__ void tile(const Slabs<float>& products, const float* terms, int tile) {
    float least[kThreadQueries];
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) least[q] = no_value(0.0f);
    least_of_tile(products, terms, least);
    bool found = false;
    const float part_slack = target_.part_slacks[tile * kGroupsPerTile + static_cast<int>(threadIdx.x) % 4];
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      if (!(least[q] <= limit_[q])) continue;
      found = true;
      limit_[q] = fminf(limit_[q], least[q] + (slack_[q] + fabsf(part_slack)));
      uint32_t columns = columns_below(products[q / 2], q % 2, terms, limit_[q]);
      int nearest = __ffs(static_cast<int>(columns)) - 1;
      if ((columns & (columns - 1)) != 0) tighten(q, products, terms, tile, least[q], part_slack < 0, nearest, columns);
      if (best_value_[q] > limit_[q] && (columns & (columns - 1)) == 0) {  // a single row, with none before it pending
        best_value_[q] = least[q];
        best_row_[q] = row_of_column(tile, nearest);
      } else {
        insert(q, least[q], __uint_as_float(row_of_column(tile, nearest)));
        collect(q, least[q], columns & ~(1u << nearest), tile);
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

  // Merges what the four threads that share a query have found; by the first of them.
  __device__ void end() {
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) insert(q, best_value_[q], __uint_as_float(best_row_[q]));
    __syncwarp();
    if (threadIdx.x % 4 == 0) {
      for (int q = 0; q < kThreadQueries; ++q) {
        if (query(q) >= target_.queries) continue;
        for (int other = 1; other < 4; ++other) {
          const float* const theirs = mine_ + other + q * kWords * 32;
          for (int i = 0; i < kKept; ++i) insert(q, theirs[i * 32], theirs[(kKept + 1 + i) * 32]);
          value(q, kKept) = fminf(value(q, kKept), theirs[kKept * 32]);
        }
        auto* const out = vectors<float4>(target_.found + part_ * target_.stride + query(q));
        out[0] = {value(q, 0), value(q, 1), value(q, 2), value(q, 3)};
        out[1] = {row(q, 0), row(q, 1), row(q, 2), 0.0f};
      }
    }
    __syncwarp();
  }

 private:
  __device__ int64_t query(int q) const { return first_query_ + static_cast<uint32_t>(q / 2 * apart_ + 8 * (q % 2)); }
  __device__ float& value(int q, int i) const { return mine_[(q * kWords + i) * 32]; }
  __device__ float& row(int q, int i) const { return mine_[(q * kWords + kKept + 1 + i) * 32]; }

  static __device__ uint32_t row_of_column(int tile, int i) {
    return static_cast<uint32_t>(tile * kOperandTile + i / 2 * 8 + i % 2 + 2 * (static_cast<int>(threadIdx.x) % 4));
  }

  // Among several columns below the limit looks for the one with the least value; where the slacks of these rows
  // differ much, and columns are not what its own slack leaves, those below the limit that follows from it. In a loop,
  // since what the compiler writes out for 32 columns is long.
  __device__ void tighten(int q, const Slabs<float>& products, const float* terms, int tile, float least, bool uneven,
                          int& nearest, uint32_t& columns) {
    float below = least;
#pragma unroll 1
    for (int look = 0; look < 2; ++look) {
      const uint32_t found = columns_below(products[q / 2], q % 2, terms, below);
      if (look > 0) {
        columns = found;
        break;
      }
      nearest = __ffs(static_cast<int>(found)) - 1;
      if (!uneven) break;
      limit_[q] = fminf(limit_[q], least + (slack_[q] + target_.row_slacks[row_of_column(tile, nearest)]));
      below = limit_[q];
    }
  }

  // All of them with the least one's value, which is no more than theirs: at worst too many are kept. The one that has
  // it came before them, so that the first row of a value is always one that has it.
  __device__ void collect(int q, float least, uint32_t columns, int tile) const {
#pragma unroll 1
    while (columns != 0) {
      const int i = __ffs(static_cast<int>(columns)) - 1;
      columns &= columns - 1;
      insert(q, least, __uint_as_float(row_of_column(tile, i)));
    }
  }

  __device__ void insert(int q, float new_value, float new_row) const {
    insert_nearest([&](int i) -> float& { return value(q, i); }, [&](int i) -> float& { return row(q, i); }, new_value,
                   new_row);
  }

  const Target& target_;
  float* mine_;  // kThreadQueries x kWords, 32 apart
  uint32_t first_query_ = 0;
  int apart_ = 0;
  int part_ = 0;
  float limit_[kThreadQueries];
  float slack_[kThreadQueries];
  float best_value_[kThreadQueries];  // smallest found so far, besides those in shared memory
  uint32_t best_row_[kThreadQueries];
};

}  // namespace kith
