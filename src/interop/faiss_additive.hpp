// FAISS's local search and residual quantizers as codecs.
//
// FAISS may keep a norm behind the codes of a vector. Those that Kith's codes have too (CodeNorm) are taken and written;
// others, of 4 bits or found by a quantizer of their own, are left out, and distances are those of the decoded vectors.
// In lists of residuals FAISS's norms are of residuals, and Kith's of whole vectors: there none is taken or written.
#pragma once

#include "core/host_array.hpp"
#include "index/index_parts.hpp"
#include "interop/faiss_sink.hpp"
#include "interop/faiss_source.hpp"

#include <cstdint>

namespace kith {

struct FaissAdditive {
  CodecParts codec;
  int64_t code_bytes = 0;  // of a vector in the file, with its norm
};

// By local search ("LS") or as residuals with a beam ("RQ").
FaissAdditive read_additive_quantizer(FaissSource& source, int64_t cols, const CodeEncoder* code);
// The code without its norms.
CodecParts without_norms(const CodecParts& codec);
// Codes without norms that the codec lacks.
HostArray<uint8_t> known_codes(const FaissAdditive& additive, const HostArray<uint8_t>& codes, int64_t rows,
                                 const Resources& resources);

// A code without its norm, which codes of another format have: the bits behind the books are zeros.
void copy_books(const CodeFormat& from, const uint8_t* code, uint8_t* out);

void write_additive_quantizer(FaissSink& sink, const CodecParts& codec);

}  // namespace kith
