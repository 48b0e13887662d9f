// Integer keys of one query with rows of signed bytes that lie anywhere: what a walk over a graph goes by
// (graph/search).
//
//   squares    sum (b - c)^2
//   products   -(sum b c)
//
// for a query b of whole numbers and rows c. Sums are of integers, so every processor finds the same. The caller sees
// to it that they stay below 2^31.
//
// Cost: an operation or two for each 16 bytes of a row where the processor multiplies bytes (four rows at a time, to
// hide the latency of memory), else four.
#pragma once

#include <cstdint>

namespace kith {

enum class ByteKeyKind : uint8_t { squares, products };

// Rows and queries end with zeros, up to a multiple of so many bytes.
inline constexpr int64_t kByteKeyColumns = 16;

struct ByteKeyRows {
  const int8_t* data = nullptr;
  int64_t stride = 0;  // a multiple of kByteKeyColumns: the columns that are compared
};

// A query whose values are bytes may be given as bytes alone, as a row is; else it has words.
struct ByteKeyQuery {
  const int8_t* bytes = nullptr;  // null where a value is none
  const int16_t* words = nullptr;
};

// Keys of the rows with these numbers.
void byte_keys_cpu(ByteKeyKind kind, const ByteKeyQuery& query, const ByteKeyRows& rows, const uint32_t* numbers,
                   int64_t count, int32_t* keys);

// The same for a query of bytes where CpuExtensions::dotprod is (scan_bytes_dotprod.cpp).
void byte_keys_dotprod(ByteKeyKind kind, const int8_t* query, const ByteKeyRows& rows, const uint32_t* numbers,
                       int64_t count, int32_t* keys);
// The same where CpuExtensions::vnni is (byte_keys_vnni.cpp).
void byte_keys_vnni(ByteKeyKind kind, const ByteKeyQuery& query, const ByteKeyRows& rows, const uint32_t* numbers,
                    int64_t count, int32_t* keys);

}  // namespace kith
