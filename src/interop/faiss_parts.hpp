// The parts of FAISS's files: quantizers (product, scalar and additive ones) as codecs, inverted files and transforms.
// Each is read from after its tag.
//
// FAISS may store a norm after the additive codes of a vector. Norms that Kith has as well (CodeNorm) are read and
// written. Others, of 4 bits or with a quantizer of their own, are dropped, and distances are those of the decoded
// vectors. In lists of residuals FAISS's norms are those of residuals, Kith's those of whole vectors, so there norms
// are neither read nor written.
#pragma once

#include "core/host_array.hpp"
#include "index/index_parts.hpp"
#include "interop/faiss_sink.hpp"
#include "interop/faiss_source.hpp"
#include "transform/transform_parts.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kith {

struct FaissCode {
  CodecParts codec;
  int64_t code_bytes = 0;     // per vector in the file, with its norm
  bool offset_bytes = false;  // codes are values plus 128

  // Whether it stores plain vectors of bytes.
  bool stores_bytes() const { return codec.format.stores_values() && size_of(codec.format.dtype) == 1; }
  // Converts a file's codes to the codec's: drops norms that it lacks, and restores the sign of bytes.
  HostArray<uint8_t> known(HostArray<uint8_t> codes, int64_t rows, const Resources& resources) const;
};

FaissCode read_product_quantizer(FaissSource& source, int64_t cols);
FaissCode read_scalar_quantizer(FaissSource& source, int64_t cols);
// By local search ("LS") or residual quantization ("RQ").
FaissCode read_additive_quantizer(FaissSource& source, int64_t cols, const CodeEncoder* code);
void write_additive_quantizer(FaissSink& sink, const CodecParts& codec);

// The code without its norms.
CodecParts without_norms(const CodecParts& codec);
// Copies a code without its norm to a format without norms; the bits after the books are zero.
void copy_books(const CodeFormat& from, const uint8_t* code, uint8_t* out);

// The name in factory strings: "PQ16", "PQ32x4", "SQ8", "SQfp16"; "Flat" for f32 and bytes.
std::string code_name(const CodecParts& codec);

// The layout of 4-bit product codes in FAISS's fast-scan indexes.
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

// The layout for blocks of `block_rows` vectors; checks that the format can be stored in it.
FastScanLayout fast_scan_layout(FaissSource& source, const CodeFormat& format, int32_t block_rows);
// Unpacks the blocks into contiguous codes of `rows` vectors.
void unpack_fast_scan(const FastScanLayout& layout, const uint8_t* blocks, int64_t rows, uint8_t* codes);

// Inverted files: centres, a code, and lists of codes and ids.
bool is_inverted_tag(std::string_view tag);
IndexParts read_faiss_inverted(FaissSource& source, std::string_view tag);

// Vector transforms: linear maps (OPQ, PCA and rotations among them), centring, unit length and padding. Every linear
// map is written as FAISS's general one.
TransformParts read_transform(FaissSource& source);
void write_transform(FaissSink& sink, const TransformParts& transform);

}  // namespace kith
