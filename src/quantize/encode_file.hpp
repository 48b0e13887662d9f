// Codes of vectors in files, made piece by piece: while codes of one piece are made, the next one is read, and the codes
// of the one before are given away.
#pragma once

#include <kith/local_search_quantizer.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/vector_quantizer.hpp>
#include <kith/view.hpp>

#include "quantize/trained_codec.hpp"

namespace kith {

// `how`: of local search, as in TrainedCodec::encode. A row's number in the file is its number there.
void encode_file(const TrainedCodec& codec, const VectorFile& rows, const MutableMatrixView& codes,
                 const LocalSearchEncoding* how, const Resources& resources);
void encode_file(const TrainedCodec& codec, const VectorFile& rows, const CodesSink& out, const LocalSearchEncoding* how,
                 const Resources& resources);

}  // namespace kith
