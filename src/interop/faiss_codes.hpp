// FAISS's product and scalar quantizers as codecs.
#pragma once

#include "index/index_parts.hpp"
#include "interop/faiss_source.hpp"

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

}  // namespace kith
