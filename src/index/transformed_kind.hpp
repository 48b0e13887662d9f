// "OPQ16,...", "PCA64,...": an index of transformed vectors. Vectors and queries go through the transforms, rounded
// once for each, and on to the index behind; distances are between transformed vectors, as in FAISS.
#pragma once

#include <kith/index.hpp>

#include "index/index_kind.hpp"
#include "transform/transform_training.hpp"

#include <memory>
#include <vector>

namespace kith {

std::shared_ptr<const IndexKind> make_transformed_kind(std::vector<TransformSpec> transforms,
                                                       std::shared_ptr<const IndexKind> inner,
                                                       const IndexParams& params);

}  // namespace kith
