// FAISS's vector transforms: linear maps (OPQ, PCA and rotations among them), centring, unit length and padding.
#pragma once

#include "interop/faiss_sink.hpp"
#include "interop/faiss_source.hpp"
#include "transform/transform_parts.hpp"

namespace kith {

TransformParts read_transform(FaissSource& source);
// Every linear map is written as FAISS's general one.
void write_transform(FaissSink& sink, const TransformParts& transform);

}  // namespace kith
