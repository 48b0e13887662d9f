// The core of the distance kernel: one block computes the keys of a tile of queries against a tile of rows.
//
// The values come through shared memory in slabs of 16 columns, one for each lane of the canonical sum, widened to
// double (and, for cosine, scaled to unit length: what then remains is a squared difference). A thread holds one row
// and four queries: 4 x 16 accumulators in registers, each advanced by exactly the operations of canonical.hpp. What
// lies past the last row, query or column is staged as zero, which changes no sum, and is not written.
//
// `Block` gives thread() and sync(); the tests give one made of real threads.
#pragma once

#include "core/half.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/device_rows.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kTileRows = 32;  // one for each thread of a warp
inline constexpr int kTileQueriesPerThread = 4;
inline constexpr int kTileWarps = 4;
inline constexpr int kTileQueries = kTileQueriesPerThread * kTileWarps;
inline constexpr int kTileThreads = kTileRows * kTileWarps;

// The dtype is looked at for every value: a slab is loaded once and used by many, so that costs little.
KITH_DEVICE inline double stored_value(const DeviceRowsView& rows, int64_t index) {
  switch (rows.dtype) {
    case DType::f16: return static_cast<double>(static_cast<const Half*>(rows.data)[index]);
    case DType::bf16: return static_cast<double>(static_cast<const BFloat16*>(rows.data)[index]);
    case DType::u8: return static_cast<double>(static_cast<const uint8_t*>(rows.data)[index]);
    case DType::i8: return static_cast<double>(static_cast<const int8_t*>(rows.data)[index]);
    default: return static_cast<double>(static_cast<const float*>(rows.data)[index]);
  }
}

// Padded so that the threads that write a slab's 16 columns hit different banks.
struct DistanceTileShared {
  alignas(16) double queries[kCanonicalLanes][kTileQueries + 2];
  double rows[kCanonicalLanes][kTileRows + 1];
};

// Columns first_col .. first_col + 15 of `kVectors` vectors from `first` on, column by column.
template <KeyKind kKind, int kVectors, int kPitch, typename Block>
KITH_DEVICE inline void stage_slab(const Block& block, const DeviceRowsView& source, int64_t first, int64_t first_col,
                                   int64_t cols, double (&slab)[kCanonicalLanes][kPitch]) {
  for (int i = block.thread(); i < kVectors * kCanonicalLanes; i += kTileThreads) {
    const int column = i % kCanonicalLanes;
    const int vector = i / kCanonicalLanes;
    double value = 0.0;
    if (first + vector < source.count && first_col + column < cols) {
      value = stored_value(source, source.stored(first + vector) * source.stride + first_col + column);
      if constexpr (kKind == KeyKind::cosine) value = value * source.inverse_norms[first + vector];
    }
    slab[column][vector] = value;
  }
}

// Writes the ordered keys of queries first_query.. and rows first_row.. to keys[query * key_stride + row].
template <KeyKind kKind, typename Block>
KITH_DEVICE inline void distance_tile(const Block& block, DistanceTileShared& shared, const DeviceRowsView& queries,
                                      const DeviceRowsView& rows, int64_t cols, int64_t first_query, int64_t first_row,
                                      uint32_t* keys, int64_t key_stride) {
  // Scaled vectors leave cosine the step of squared_l2.
  constexpr KeyKind kStep = kKind == KeyKind::cosine ? KeyKind::squared_l2 : kKind;
  const int row_in_tile = block.thread() % kTileRows;
  const int query_in_tile = block.thread() / kTileRows * kTileQueriesPerThread;

  double lanes[kTileQueriesPerThread][kCanonicalLanes] = {};
  for (int64_t first_col = 0; first_col < cols; first_col += kCanonicalLanes) {
    stage_slab<kKind, kTileQueries>(block, queries, first_query, first_col, cols, shared.queries);
    stage_slab<kKind, kTileRows>(block, rows, first_row, first_col, cols, shared.rows);
    block.sync();
    KITH_UNROLL
    for (int j = 0; j < kCanonicalLanes; ++j) {
      const double x = shared.rows[j][row_in_tile];
      KITH_UNROLL
      for (int q = 0; q < kTileQueriesPerThread; ++q) {
        lanes[q][j] = canonical_step<kStep>(lanes[q][j], shared.queries[j][query_in_tile + q], x, 0.0, 0.0);
      }
    }
    block.sync();
  }

  const int64_t row = first_row + row_in_tile;
  if (row >= rows.count) return;
  KITH_UNROLL
  for (int q = 0; q < kTileQueriesPerThread; ++q) {
    const int64_t query = first_query + query_in_tile + q;
    if (query >= queries.count) continue;
    double inverse_q = 0.0;
    double inverse_x = 0.0;
    if constexpr (kKind == KeyKind::cosine) {
      inverse_q = queries.inverse_norms[query];
      inverse_x = rows.inverse_norms[row];
    }
    keys[query * key_stride + row] =
        ordered_key(canonical_key<kKind>(canonical_tree<kKind>(lanes[q]), inverse_q, inverse_x));
  }
}

}  // namespace kith
