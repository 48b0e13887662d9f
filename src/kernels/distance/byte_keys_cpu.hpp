// Integer keys of one query and rows of signed bytes at arbitrary addresses, for walks over a graph
// (graph/search).
//
//   squares    sum (b - c)^2
//   products   -(sum b c)
//
// for a query b of whole numbers and rows c. Sums are integers, so all processors compute the same. The caller ensures
// that they stay below 2^31.
//
// Cost: one or two operations per 16 bytes of a row if the processor multiplies bytes (four rows at a time, to hide the
// latency of memory), otherwise four.
#pragma once

#include <cstdint>

namespace kith {

enum class ByteKeyKind : uint8_t { squares, products };

// Rows and queries are padded with zeros to a multiple of this many bytes.
inline constexpr int64_t kByteKeyColumns = 16;

struct ByteKeyRows {
  const int8_t* data = nullptr;
  int64_t stride = 0;  // a multiple of kByteKeyColumns: the columns that are compared
};

// A query: bytes if all of its values fit, otherwise 16-bit words.
struct ByteKeyQuery {
  const int8_t* bytes = nullptr;  // null if a value does not fit a byte
  const int16_t* words = nullptr;
};

// Computes the keys of the rows with these numbers.
void byte_keys_cpu(ByteKeyKind kind, const ByteKeyQuery& query, const ByteKeyRows& rows, const uint32_t* numbers,
                   int64_t count, int32_t* keys);

// The same for a query of bytes; requires CpuExtensions::dotprod (scan_bytes_dotprod.cpp).
void byte_keys_dotprod(ByteKeyKind kind, const int8_t* query, const ByteKeyRows& rows, const uint32_t* numbers,
                       int64_t count, int32_t* keys);
// The same; requires CpuExtensions::vnni (byte_keys_vnni.cpp).
void byte_keys_vnni(ByteKeyKind kind, const ByteKeyQuery& query, const ByteKeyRows& rows, const uint32_t* numbers,
                    int64_t count, int32_t* keys);

}  // namespace kith
