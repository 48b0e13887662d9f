// Rows of signed bytes, packed so that one query is compared with all of them in little time: the keys are those of
// byte_keys_cpu.hpp.
//
// Rows lie side by side, four columns of each in a word: x86's VNNI multiplies four unsigned bytes of the query by four
// signed ones of sixteen rows at once, and no sum goes across a vector. With 128 added to the query's bytes,
//
//   squares    sum (b - c)^2 = sum b^2 + (sum c^2 + 256 sum c) - 2 sum (b + 128) c
//   products   -(sum b c)    = 128 sum c - sum (b + 128) c
//
// where what depends on the row alone is kept beside it. 1,024 rows of 128 bytes take 2.0 us where byte_keys_cpu() takes
// 7.1 (a Xeon with AMX).
//
// Memory: the rows, rounded up to kTogether, and 4 bytes for each.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "kernels/distance/byte_keys_cpu.hpp"

#include <cstdint>

namespace kith {

class PackedByteRows {
 public:
  static constexpr int64_t kTogether = 64;

  // Whether this processor has the instructions.
  static bool suits();

  // Copies rows 0 .. count - 1.
  PackedByteRows(ByteKeyKind kind, const ByteKeyRows& rows, int64_t count, const Resources& resources);

  // Fills keys[i] with the key of row first + i for all i below `count`, rounded up to kTogether; `first` is a multiple
  // of kTogether. The query has the rows' stride. Only if suits().
  void keys(const int8_t* query, int64_t first, int64_t count, int32_t* keys) const;

  int64_t bytes() const { return words_.bytes() + terms_.bytes(); }

 private:
  ByteKeyKind kind_;
  int64_t stride_;
  HostArray<int32_t> words_;  // [rows / kTogether][stride / 4][kTogether]
  HostArray<int32_t> terms_;  // of each row
};

// The same; requires CpuExtensions::vnni (packed_byte_rows_vnni.cpp).
void packed_keys_vnni(ByteKeyKind kind, const int8_t* query, int64_t stride, const int32_t* words, const int32_t* terms,
                      int64_t count, int32_t* keys);

}  // namespace kith
