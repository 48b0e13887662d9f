// Epilogues of a tile's products, shared by both implementations, whose threads hold the same elements of a tile.
//
// A thread has two slabs of 16 rows (queries) and 128 columns (rows of the base): element 4 j + i of a slab is at row
// lane / 4 + 8 (i / 2) and column 8 j + 2 (lane % 4) + i % 2. So it has the products of four queries, 32 columns each.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/matrix/product_cuda.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kSlabs = 2;
inline constexpr int kSlabValues = 64;
inline constexpr int kThreadQueries = 2 * kSlabs;

template <typename Acc>
using Slabs = Acc[kSlabs][kSlabValues];

// The number of a thread's query i, counted from `first`, that of its first slab's first row.
struct ThreadQueries {
  int first;
  int apart;  // from the first slab to the second

  __device__ int operator()(int i) const {
    return first + i / 2 * apart + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * (i % 2);
  }
};

__device__ inline float no_value(float) { return __int_as_float(0x7F800000); }
__device__ inline int32_t no_value(int32_t) { return 0x7FFFFFFF; }
__device__ inline float smaller(float least, float term, float product) { return fminf(least, term + product); }
__device__ inline int32_t smaller(int32_t least, int32_t term, int32_t product) {
  return __viaddmin_s32(product, term, least);
}
// Padding has larger values than all rows.
__device__ inline float value_of(float least) { return least; }
__device__ inline float value_of(int32_t least) {
  return least < 0x30000000 ? static_cast<float>(least) : __int_as_float(0x7F800000);
}

// Updates the smallest value of each of the thread's queries.
template <typename Acc>
__device__ inline void least_of_tile(const Slabs<Acc>& products, const Acc* terms, Acc (&least)[kThreadQueries]) {
  const int first_col = 2 * (static_cast<int>(threadIdx.x) % 4);
  KITH_UNROLL
  for (int j = 0; j < kSlabValues / 4; ++j) {
    const Acc left = terms[8 * j + first_col];
    const Acc right = terms[8 * j + first_col + 1];
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      const Acc* const pair = &products[q / 2][4 * j + 2 * (q % 2)];
      least[q] = smaller(smaller(least[q], left, pair[0]), right, pair[1]);
    }
  }
}

// A query's threshold as what a product is compared with. No threshold lets padding pass.
__device__ inline float limit_of(float threshold, float) { return threshold; }
__device__ inline int32_t limit_of(float threshold, int32_t) {
  return threshold >= 0x30000000 ? 0x30000000 : static_cast<int32_t>(ceilf(threshold));
}
__device__ inline float lowest_limit(float) { return __int_as_float(0xFF800000); }
__device__ inline int32_t lowest_limit(int32_t) { return -0x7FFFFFFF - 1; }

// A bit per column of the thread's 32 that is not above the limit: pair j at bits 2 j and 2 j + 1.
template <typename Acc>
__device__ inline uint32_t columns_below(const Acc (&products)[kSlabValues], int half, const Acc* terms, Acc limit) {
  const int first_col = 2 * (static_cast<int>(threadIdx.x) % 4);
  uint32_t columns = 0;
  KITH_UNROLL
  for (int i = 0; i < kSlabValues / 2; ++i) {
    const Acc value = terms[8 * (i / 2) + i % 2 + first_col] + products[4 * (i / 2) + 2 * half + i % 2];
    if (value <= limit) columns |= 1u << i;
  }
  return columns;
}

// The defaults of an epilogue's interface.
struct EpilogueTraits {
  static constexpr int kTerms = 1;  // of a row
  static constexpr bool kShortItems = false;
  static constexpr int kSharedBytes = 0;  // for each warp
  __device__ void end() {}
};

// Writes the smallest value of every group.
template <typename Acc>
class MinimaEpilogue : public EpilogueTraits {
 public:
  using Target = ProductMinima;

  __device__ MinimaEpilogue(const Target& target, const ProductOperands& operands, std::byte*)
      : target_(target), query_count_(operands.query_count) {}

  __device__ void begin(int64_t first_query, const ThreadQueries& queries, int64_t) {
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      query_[q] = first_query + queries(q);
      least_[q] = no_value(Acc{});
    }
  }

  __device__ void tile(const Slabs<Acc>& products, const Acc* terms, int tile) {
    least_of_tile(products, terms, least_);
    if (target_.tiles_per_group == 2 && tile % 2 == 0) return;
    const int64_t group = (target_.tiles_per_group == 2 ? tile / 2 : tile) * kGroupsPerTile + threadIdx.x % 4;
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      if (query_[q] < query_count_) target_.values[query_[q] * target_.stride + group] = value_of(least_[q]);
      least_[q] = no_value(Acc{});
    }
  }

 private:
  const Target& target_;
  int64_t query_count_;
  int64_t query_[kThreadQueries];
  Acc least_[kThreadQueries];
};

// What a warp finds, in shared memory, from where all its lanes bring it to its place at a time: adding to a count in
// device memory takes long.
template <int kRoom>
class WarpBuffer {
 public:
  static constexpr int kSharedBytes = (kRoom + 1) * 4;  // for each warp

  __device__ explicit WarpBuffer(std::byte* shared)
      : count_(vectors<uint32_t>(shared) + threadIdx.x / 32 * (kRoom + 1)), found_(count_ + 1) {
    if (threadIdx.x % 32 == 0) *count_ = 0;
    __syncwarp();
  }

  // row << 8 | query of the thread's columns (columns_below) of a tile that begins with first_row; write(entry) where
  // there is no room. An item's rows are at most 2^24, its queries 2^8. Not unrolled, few as they are: the code must
  // fit its cache.
  template <typename Write>
  __device__ void collect(uint32_t columns, uint32_t first_row, int query, const Write& write) {
    const uint32_t first = first_row + 2 * (threadIdx.x % 4);
    while (columns != 0) {
      const int i = __ffs(static_cast<int>(columns)) - 1;
      columns &= columns - 1;
      const uint32_t row = first + static_cast<uint32_t>(i / 2 * 8 + i % 2);
      const uint32_t entry = row << 8 | static_cast<uint32_t>(query);
      const uint32_t place = atomicAdd(count_, 1u);
      if (place < kRoom) {
        found_[place] = entry;
      } else {
        write(entry);
      }
    }
  }

  // Flushes when half full, or when forced: write(entries, count) by all lanes.
  template <typename Write>
  __device__ void flush(bool whatever, const Write& write) {
    __syncwarp();
    if (!whatever && *count_ <= kRoom / 2) return;
    __syncwarp();
    write(found_, min(*count_, static_cast<uint32_t>(kRoom)));
    __syncwarp();
    if (threadIdx.x % 32 == 0) *count_ = 0;
    __syncwarp();
  }

 private:
  uint32_t* count_;
  uint32_t* found_;
};

// Collects the rows at or below the threshold.
template <typename Acc>
class CandidatesEpilogue : public EpilogueTraits {
 public:
  using Target = ProductCandidates;
  using Buffer = WarpBuffer<95>;
  static constexpr int kSharedBytes = Buffer::kSharedBytes;

  __device__ CandidatesEpilogue(const Target& target, const ProductOperands& operands, std::byte* shared)
      : target_(target), query_count_(operands.query_count), row_count_(operands.row_count), found_(shared) {}

  __device__ void begin(int64_t first_query, const ThreadQueries& queries, int64_t first_row) {
    first_query_ = first_query;
    first_row_ = first_row;
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      in_tile_[q] = queries(q);
      const int64_t query = first_query + in_tile_[q];
      limit_[q] = query < query_count_ ? limit_of(target_.thresholds[query], Acc{}) : lowest_limit(Acc{});
    }
  }

  __device__ void tile(const Slabs<Acc>& products, const Acc* terms, int tile) {
    Acc least[kThreadQueries];
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) least[q] = no_value(Acc{});
    least_of_tile(products, terms, least);
    const auto first = static_cast<uint32_t>(int64_t{tile} * kOperandTile - first_row_);
    KITH_UNROLL
    for (int q = 0; q < kThreadQueries; ++q) {
      if (least[q] <= limit_[q]) {
        found_.collect(columns_below(products[q / 2], q % 2, terms, limit_[q]), first, in_tile_[q],
                       [&](uint32_t entry) { write(entry); });
      }
    }
    flush(false);
  }

  __device__ void end() { flush(true); }

 private:
  __device__ void write(uint32_t entry) const {
    const int64_t query = first_query_ + (entry & 0xFF);
    const int64_t row = first_row_ + (entry >> 8);
    if (row >= row_count_) return;
    const uint32_t place = atomicAdd(&target_.counts[query], 1u);
    if (place < target_.capacity) target_.rows[query * target_.capacity + place] = static_cast<uint32_t>(row);
  }

  __device__ void flush(bool whatever) {
    found_.flush(whatever, [&](const uint32_t* entries, uint32_t count) {
      for (uint32_t i = threadIdx.x % 32; i < count; i += 32) write(entries[i]);
    });
  }

  const Target& target_;
  int64_t query_count_;
  int64_t row_count_;
  int64_t first_query_ = 0;
  int64_t first_row_ = 0;
  int in_tile_[kThreadQueries];
  Acc limit_[kThreadQueries];
  Buffer found_;
};

// The epilogues of a search among few rows, of which many are candidates: minima of parts of a tile, fine enough for a
// large k, and the rows at or below the threshold as bits, which cost the same however many they are and need no
// counter. Time is that of the product.

// Writes the least value of every part.
template <typename Acc>
class PartsEpilogue : public EpilogueTraits {
 public:
  using Target = ProductParts;

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
class MarksEpilogue : public EpilogueTraits {
 public:
  using Target = ProductMarks;

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

 private:
  const Target& target_;
  int64_t query_count_;
  int64_t stride_;
  int64_t query_[kThreadQueries];
  Acc limit_[kThreadQueries];
  uint32_t even_[kThreadQueries];
};

// The epilogue that writes pairs which matter to their query or to their row: a graph is built from both sides.
//
// A pair matters to its query where term + product is not above what the query has left, and to its row where that is
// so with the query's own part added: second term + product <= second limit, the second term being the row's less what
// the row has left. Few pairs pass, so that a tile costs two minima for each query, and what passes is looked at again.
// Each warp collects pairs in shared memory and makes room for many in the list at a time.
template <typename Acc>
class PairsEpilogue : public EpilogueTraits {
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
