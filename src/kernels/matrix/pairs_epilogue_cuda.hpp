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
  using Buffer = WarpBuffer<127>;
  static constexpr int kSharedBytes = Buffer::kSharedBytes;

  __device__ PairsEpilogue(const Target& target, const ProductOperands&, std::byte* shared)
      : target_(target), found_(shared) {}

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
      found_.collect(columns, static_cast<uint32_t>((tile - first_tile_) * kOperandTile), queries_(q),
                     [&](uint32_t entry) { write(entry, take(1)); });
    }
    flush(false);
  }

  __device__ void end() { flush(true); }

 private:
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

  __device__ void flush(bool whatever) {
    found_.flush(whatever, [&](const uint32_t* entries, uint32_t count) {
      if (count == 0) return;
      const uint32_t lane = threadIdx.x % 32;
      uint32_t first = lane == 0 ? take(count) : 0;
      first = __shfl_sync(0xFFFFFFFFu, first, 0);
      for (uint32_t i = lane; i < count; i += 32) write(entries[i], first + i);
    });
  }

  const Target& target_;
  uint32_t first_query_ = 0;
  int first_tile_ = 0;
  ThreadQueries queries_ = {0, 0};
  Acc limit_[kThreadQueries][2];
  Buffer found_;
};

}  // namespace kith
