// The epilogue that writes pairs which matter to their query or to their row: a graph is built from both sides.
//
// A pair matters to its query where term + product is not above what the query has left, and to its row where that is so
// with the query's own part added: second term + product <= second limit, the second term being the row's less what the
// row has left. Few pairs pass, so that a tile costs two minima for each query, and what passes is looked at again. Each
// warp collects pairs in shared memory and makes room for many in the list at a time.
#pragma once

#include "kernels/matrix/product_epilogue_cuda.hpp"

#include <cstdint>

namespace kith {

template <typename Acc>
class PairsEpilogue {
 public:
  using Target = ProductPairs;
  static constexpr int kTerms = 2;
  static constexpr bool kShortItems = true;  // a cell has a few tiles
  static constexpr int kBuffer = 127;                     // pairs a warp holds
  static constexpr int kSharedBytes = (kBuffer + 1) * 4;  // for each warp

  __device__ PairsEpilogue(const Target& target, const ProductOperands&, std::byte* shared) : target_(target) {
    uint32_t* const mine = vectors<uint32_t>(shared) + threadIdx.x / 32 * (kBuffer + 1);
    count_ = mine;
    found_ = mine + 1;
    if (threadIdx.x % 32 == 0) *count_ = 0;
    __syncwarp();
  }

  __device__ void begin(int64_t first_query, const ThreadQueries& queries, int64_t first_row) {
    first_query_ = static_cast<uint32_t>(first_query);
    first_tile_ = static_cast<int>(first_row / kOperandTile);
    queries_ = queries;
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      const Acc* const limits = static_cast<const Acc*>(target_.limits) + 2 * (first_query + queries(q));
      limit_[q][0] = limits[0];
      limit_[q][1] = limits[1];
    }
  }

  __device__ void tile(const Slabs<Acc>& products, const Acc* terms, int tile) {
    Acc least[kThreadQueries];
    uint32_t passing = 0;  // a bit for each limit of each query
    KITH_UNROLL
    for (int side = 0; side < 2; ++side) {
      KITH_UNROLL
      for (int q = 0; q < kThreadQueries; ++q) least[q] = no_value(Acc{});
      least_of_tile(products, terms + side * kOperandTile, least);
      KITH_UNROLL
      for (int q = 0; q < kThreadQueries; ++q) {
        if (least[q] <= limit_[q][side]) passing |= 1u << (2 * q + side);
      }
    }
    if (!__any_sync(0xFFFFFFFFu, passing != 0)) return;
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      uint32_t columns = 0;
      if (passing >> (2 * q) & 1u) columns |= columns_below(products[q / 2], q % 2, terms, limit_[q][0]);
      if (passing >> (2 * q) & 2u) columns |= columns_below(products[q / 2], q % 2, terms + kOperandTile, limit_[q][1]);
      collect(columns, tile, queries_(q));
    }
    __syncwarp();
    if (*count_ > kBuffer / 2) flush();
  }

  __device__ void end() { flush(); }

 private:
  // An item's rows are at most 2^24, its queries 2^8. Not unrolled, few as they are: the code must fit its cache.
  __device__ void collect(uint32_t columns, int tile, int query) {
    const int first_col = 2 * (static_cast<int>(threadIdx.x) % 4);
    const auto first = static_cast<uint32_t>((tile - first_tile_) * kOperandTile + first_col);
    while (columns != 0) {
      const int i = __ffs(static_cast<int>(columns)) - 1;
      columns &= columns - 1;
      const uint32_t row = first + static_cast<uint32_t>(i / 2 * 8 + i % 2);
      const uint32_t entry = row << 8 | static_cast<uint32_t>(query);
      const uint32_t place = atomicAdd(count_, 1u);
      if (place < kBuffer) {
        found_[place] = entry;
      } else {
        write(entry, take(1));
      }
    }
  }

  // The first of so many places in the list.
  __device__ uint32_t take(uint32_t places) const {
    if (*static_cast<volatile uint32_t*>(target_.count) >= kManyPairs) return kManyPairs;
    return atomicAdd(target_.count, places);
  }

  __device__ void write(uint32_t entry, uint32_t place) const {
    const uint64_t query = first_query_ + (entry & 0xFF);
    const auto row = static_cast<uint64_t>(first_tile_) * kOperandTile + (entry >> 8);
    if (place < target_.capacity) target_.pairs[place] = query << 32 | row;
  }

  __device__ void flush() {
    __syncwarp();
    const uint32_t count = min(*count_, static_cast<uint32_t>(kBuffer));
    if (count == 0) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    uint32_t first = lane == 0 ? take(count) : 0;
    first = __shfl_sync(0xFFFFFFFFu, first, 0);
    for (uint32_t i = static_cast<uint32_t>(lane); i < count; i += 32) write(found_[i], first + i);
    __syncwarp();
    if (lane == 0) *count_ = 0;
    __syncwarp();
  }

  const Target& target_;
  uint32_t first_query_ = 0;
  int first_tile_ = 0;
  ThreadQueries queries_ = {0, 0};
  Acc limit_[kThreadQueries][2];
  uint32_t* count_;
  uint32_t* found_;
};

}  // namespace kith
