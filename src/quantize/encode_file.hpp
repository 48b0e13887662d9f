// Encodes vectors in files, piece by piece: while one piece is encoded, the next is read and the codes of the one
// before are delivered.
#pragma once

#include <kith/local_search_quantizer.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/vector_quantizer.hpp>
#include <kith/view.hpp>

#include "quantize/trained_codec.hpp"

namespace kith {

// `how` as in TrainedCodec::encode(). Local search uses a row's number in the file.
void encode_file(const TrainedCodec& codec, const VectorFile& rows, const MutableMatrixView& codes,
                 const LocalSearchEncoding* how, const Resources& resources);
void encode_file(const TrainedCodec& codec, const VectorFile& rows, const CodesSink& out, const LocalSearchEncoding* how,
                 const Resources& resources);

}  // namespace kith
