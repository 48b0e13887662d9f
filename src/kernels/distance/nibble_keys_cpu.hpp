// Integer keys of one query with rows of four bits a column anywhere in memory, as byte_keys_cpu.hpp has them for rows
// of bytes: a half byte c, from -8 to 7, stands for the byte 8 c. So a query is the same for both, and is rounded more
// finely than the rows are.
//
// Sixteen bytes hold 32 columns: byte i has column i in its lower half, column 16 + i in its upper one. Masked and
// shifted they are two vectors of 16 c.
//
// Cost: half the memory of bytes, and at most as many operations per column.
#pragma once

#include "kernels/distance/byte_keys_cpu.hpp"

#include <cstdint>

namespace kith {

inline constexpr int64_t kNibbleColumns = 32;  // rows and queries are zero-padded to a multiple of this
inline constexpr int kNibbleStep = 8;
inline constexpr int kLeastNibble = -8;
inline constexpr int kMostNibble = 7;

constexpr int64_t nibble_bytes(int64_t columns) { return columns / 2; }

// Decodes a row to bytes; `columns` is a multiple of kNibbleColumns.
inline void unpack_nibbles(const int8_t* row, int64_t columns, int8_t* bytes) {
  constexpr int64_t kHalf = kNibbleColumns / 2;
  for (int64_t first = 0; first < columns; first += kNibbleColumns, row += kHalf) {
    for (int64_t i = 0; i < kHalf; ++i) {
      bytes[first + i] = static_cast<int8_t>(static_cast<int8_t>(row[i] << 4) >> 1);
      bytes[first + kHalf + i] = static_cast<int8_t>(static_cast<int8_t>(row[i] & 0xF0) >> 1);
    }
  }
}
// Packs `nibbles`, one per byte, each between kLeastNibble and kMostNibble.
inline void pack_nibbles(const int8_t* nibbles, int64_t columns, int8_t* row) {
  constexpr int64_t kHalf = kNibbleColumns / 2;
  for (int64_t first = 0; first < columns; first += kNibbleColumns, row += kHalf) {
    for (int64_t i = 0; i < kHalf; ++i) {
      row[i] = static_cast<int8_t>((nibbles[first + kHalf + i] * 16) | (nibbles[first + i] & 0x0F));
    }
  }
}

// `rows.stride` is the bytes of a row, a multiple of 16.
void nibble_keys_cpu(ByteKeyKind kind, const ByteKeyQuery& query, const ByteKeyRows& rows, const uint32_t* numbers,
                     int64_t count, int32_t* keys);

// The same for a query of bytes; requires CpuExtensions::dotprod (nibble_keys_dotprod.cpp).
void nibble_keys_dotprod(ByteKeyKind kind, const int8_t* query, const ByteKeyRows& rows, const uint32_t* numbers,
                         int64_t count, int32_t* keys);
// The same; requires CpuExtensions::vnni (nibble_keys_vnni.cpp).
void nibble_keys_vnni(ByteKeyKind kind, const int8_t* query, const ByteKeyRows& rows, const uint32_t* numbers,
                      int64_t count, int32_t* keys);

}  // namespace kith
