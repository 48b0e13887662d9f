// The memory layout of rows for the matrix units, and the grouping of rows.
//
// Rows are cut into chunks of 128 bytes (64 halves or 128 bytes, padded with zeros). A tile is 128 rows; its chunk c is
// one block of 16 KiB, so that a plain copy brings it to shared memory as it is: 128 bytes a row, 16-byte units
// swizzled by the row's number modulo 8, as the matrix units read them without bank conflicts.
//
// A group is the part of a tile's products for one query that one thread holds: columns 8 j + 2 l and 8 j + 2 l + 1 for
// l = 0..3, so that its minimum costs no exchange between threads. One or two tiles in a row make a group.
#pragma once

#include "core/divide.hpp"
#include "core/host_device.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kOperandTile = 128;  // rows
inline constexpr int kChunkBytes = 128;   // of a row
inline constexpr int kTileChunkBytes = kOperandTile * kChunkBytes;
inline constexpr int kQueryTile = 2 * kOperandTile;  // queries that one block multiplies at a time
inline constexpr int kStepBytes = 32;  // of a row that the matrix units multiply at a time
inline constexpr int kChunkSteps = kChunkBytes / kStepBytes;
inline constexpr int kGroupsPerTile = 4;
inline constexpr int kGroupRowsPerTile = kOperandTile / kGroupsPerTile;

// Chunks per row of this many columns.
KITH_HOST_DEVICE constexpr int64_t operand_chunks(int64_t cols, int64_t bytes_per_value) {
  return divide_up(cols * bytes_per_value, kChunkBytes);
}
// Steps of the last chunk that hold columns: 80 halves are a chunk and one step of the next.
KITH_HOST_DEVICE constexpr int last_chunk_steps(int64_t cols, int64_t bytes_per_value) {
  const int64_t before = (operand_chunks(cols, bytes_per_value) - 1) * kChunkSteps;
  return static_cast<int>(divide_up(cols * bytes_per_value, kStepBytes) - before);
}
// Tiles come in pairs: a pair of query tiles is multiplied at a time, a pair of base tiles may be a group.
KITH_HOST_DEVICE constexpr int64_t operand_tiles(int64_t rows) { return 2 * divide_up(rows, kQueryTile); }
KITH_HOST_DEVICE constexpr int64_t operand_bytes(int64_t rows, int64_t chunks) {
  return operand_tiles(rows) * chunks * kTileChunkBytes;
}

// The offset of byte `byte` of row `row`.
KITH_HOST_DEVICE constexpr int64_t operand_offset(int64_t row, int64_t byte, int64_t chunks) {
  const int64_t tile = row / kOperandTile;
  const int64_t in_tile = row % kOperandTile;
  const int64_t unit = (byte % kChunkBytes / 16) ^ (in_tile % 8);
  return (tile * chunks + byte / kChunkBytes) * kTileChunkBytes + in_tile * kChunkBytes + unit * 16 + byte % 16;
}

// Rows of a base with groups of one or two tiles.
KITH_HOST_DEVICE constexpr int64_t group_count(int64_t rows, int tiles_per_group) {
  return operand_tiles(rows) / tiles_per_group * kGroupsPerTile;
}
KITH_HOST_DEVICE constexpr int group_rows(int tiles_per_group) { return kGroupRowsPerTile * tiles_per_group; }
// Row i of a group; may be past the last row of the base.
KITH_HOST_DEVICE constexpr int64_t group_row(int64_t group, int i, int tiles_per_group) {
  const int64_t tile = group / kGroupsPerTile * tiles_per_group + i / kGroupRowsPerTile;
  const int in_tile = i % kGroupRowsPerTile;
  return tile * kOperandTile + in_tile / 2 * 8 + group % kGroupsPerTile * 2 + in_tile % 2;
}

// Smaller groups, where a base has few rows: a thread's columns of a tile are cut into parts of 2 or 8.
KITH_HOST_DEVICE constexpr int64_t part_count(int64_t rows, int rows_per_part) {
  return operand_tiles(rows) * (kOperandTile / rows_per_part);
}

// Marked rows: a bit per row of the tiles. A thread's part of a tile is a word, and the words of two tiles are
// adjacent, so that four threads write 32 bytes per query.
inline constexpr int kMarkWordsPerTile = 4;
KITH_HOST_DEVICE constexpr int64_t mark_words(int64_t rows) { return operand_tiles(rows) * kMarkWordsPerTile; }
// The word of a tile's columns 8 j + 2 `part` and 8 j + 2 `part` + 1.
KITH_HOST_DEVICE constexpr int64_t mark_word(int64_t tile, int part) { return tile / 2 * 8 + part * 2 + tile % 2; }
// The row of a word's bit; may be past the last row of the base.
KITH_HOST_DEVICE constexpr int64_t marked_row(int64_t word, int bit) {
  const int64_t tile = word / 8 * 2 + word % 2;
  return tile * kOperandTile + bit / 2 * 8 + word % 8 / 2 * 2 + bit % 2;
}

}  // namespace kith
