// FAISS's product and scalar quantizers as codecs.
#pragma once

#include "index/index_parts.hpp"
#include "interop/faiss_source.hpp"

#include <cstdint>
#include <string>

namespace kith {

CodecParts read_product_quantizer(FaissSource& source, int64_t cols);

struct FaissScalarCodec {
  CodecParts codec;
  bool offset_bytes = false;  // codes are 128 more than the values
};
FaissScalarCodec read_scalar_quantizer(FaissSource& source, int64_t cols);

// As factory strings have it: "PQ16", "PQ32x4", "SQ8", "SQfp16"; "Flat" for f32 and bytes.
std::string code_name(const CodecParts& codec);

// The layout of 4-bit product codes in FAISS's fast-scan indexes, and how codes are taken from it one by one.
//
// Vectors come in blocks of `block_rows`, a multiple of 32. A block has, for each pair of sub-codes, `block_rows`
// bytes: for each 32 vectors 16 bytes with the first sub-code of the pair, then 16 with the second. In those, byte 2i
// is of vectors i and i + 16, byte 2i + 1 of vectors i + 8 and i + 24: the first in the low half, the second in the
// high.

struct FastScanLayout {
  int64_t parts = 0;  // sub-codes of a vector
  int64_t block_rows = 32;

  constexpr int64_t pairs() const { return (parts + 1) / 2; }
  constexpr int64_t block_bytes() const { return pairs() * block_rows; }
  constexpr int64_t code_bytes() const { return pairs(); }
};

// The codes of so many vectors, one behind the other, from their blocks.
void unpack_fast_scan(const FastScanLayout& layout, const uint8_t* blocks, int64_t rows, uint8_t* codes);

}  // namespace kith
