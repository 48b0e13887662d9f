// The epilogues of a search among few rows, of which many are candidates: minima of parts of a tile, fine enough for a
// large k, and the rows at or below the threshold as bits, which cost the same however many they are and need no
// counter. Time is that of the product.
#pragma once

#include "kernels/matrix/product_epilogue_cuda.hpp"

#include <cstdint>

namespace kith {

// Writes the least value of every part.
template <typename Acc>
class PartsEpilogue {
 public:
  using Target = ProductParts;
  static constexpr int kTerms = 1;
  static constexpr bool kShortItems = false;
  static constexpr int kSharedBytes = 0;  // for each warp

  __device__ PartsEpilogue(const Target& target, const ProductOperands& operands, std::byte*)
      : target_(target),
        query_count_(operands.query_count),
        stride_(target.stride > 0 ? target.stride : part_count(operands.row_count, target.rows_per_part)) {}

  __device__ void begin(int64_t first_query, const ThreadQueries& queries, int64_t first_row) {
    first_tile_ = target_.stride > 0 ? static_cast<int>(first_row / kOperandTile) : 0;
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) query_[q] = first_query + queries(q);
  }

  __device__ void tile(const Slabs<Acc>& products, const Acc* terms, int tile) const {
    if (target_.rows_per_part == 2) {
      write<2>(products, terms, tile);
    } else {
      write<8>(products, terms, tile);
    }
  }

  __device__ void end() {}

 private:
  template <int kRows>
  __device__ void write(const Slabs<Acc>& products, const Acc* terms, int tile) const {
    constexpr int kPairs = kRows / 2;                    // of neighbouring columns
    constexpr int kParts = kSlabValues / 4 / kPairs;     // of a thread, for each query
    constexpr int kPartsPerTile = kOperandTile / kRows;  // of all four threads that share the query
    const int first_col = 2 * (static_cast<int>(threadIdx.x) % 4);
    const int64_t first_part = int64_t{tile - first_tile_} * kPartsPerTile + threadIdx.x % 4 * kParts;
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      if (query_[q] >= query_count_) continue;
      auto* const out = vectors<float4>(target_.values + query_[q] * stride_ + first_part);
      KITH_UNROLL
      for (int four = 0; four < kParts / 4; ++four) {
        float values[4];
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) {
          Acc least = no_value(Acc{});
          KITH_UNROLL
          for (int pair = 0; pair < kPairs; ++pair) {
            const int j = (4 * four + i) * kPairs + pair;
            const Acc* const two = &products[q / 2][4 * j + 2 * (q % 2)];
            least = smaller(smaller(least, terms[8 * j + first_col], two[0]), terms[8 * j + first_col + 1], two[1]);
          }
          values[i] = value_of(least);
        }
        out[four] = {values[0], values[1], values[2], values[3]};
      }
    }
  }

  const Target& target_;
  int64_t query_count_;
  int64_t stride_;
  int first_tile_ = 0;
  int64_t query_[kThreadQueries];
};

// Marks the rows at or below the threshold. Items begin with an even tile and have an even number of them.
template <typename Acc>
class MarksEpilogue {
 public:
  using Target = ProductMarks;
  static constexpr int kTerms = 1;
  static constexpr bool kShortItems = false;
  static constexpr int kSharedBytes = 0;  // for each warp

  __device__ MarksEpilogue(const Target& target, const ProductOperands& operands, std::byte*)
      : target_(target), query_count_(operands.query_count), stride_(mark_words(operands.row_count)) {}

  __device__ void begin(int64_t first_query, const ThreadQueries& queries, int64_t) {
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      query_[q] = first_query + queries(q);
      limit_[q] = query_[q] < query_count_ ? limit_of(target_.thresholds[query_[q]], Acc{}) : lowest_limit(Acc{});
      even_[q] = 0;
    }
  }

  __device__ void tile(const Slabs<Acc>& products, const Acc* terms, int tile) {
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      const uint32_t word = columns_below(products[q / 2], q % 2, terms, limit_[q]);
      if (tile % 2 == 0) {
        even_[q] = word;
      } else if (query_[q] < query_count_) {
        uint32_t* const out =
            target_.words + query_[q] * stride_ + mark_word(tile - 1, static_cast<int>(threadIdx.x) % 4);
        store_vector(out, uint2{even_[q], word});
      }
    }
  }

  __device__ void end() {}

 private:
  const Target& target_;
  int64_t query_count_;
  int64_t stride_;
  int64_t query_[kThreadQueries];
  Acc limit_[kThreadQueries];
  uint32_t even_[kThreadQueries];
};

}  // namespace kith
