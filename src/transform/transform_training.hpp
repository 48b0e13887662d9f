// Transforms by name, trained one after the other: each on rows that went through those before it.
//
// Trained on the host's threads, whichever device will apply them: a sample of the rows is enough, and the matrices are
// as small as vectors are wide. The same rows and seed give the same bytes for any number of threads, memory limit,
// instruction set or place of the rows.
#pragma once

#include <kith/resources.hpp>

#include "rows/row_source.hpp"
#include "transform/transform_chain.hpp"
#include "transform/transform_spec.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// Throws InvalidArgument for what cannot be trained: columns that a kind cannot make, no rows where some are needed.
TransformChain train_transforms(const std::vector<TransformSpec>& specs, RowSource& rows, uint64_t seed,
                                const Resources& resources);
Footprint transform_training_footprint(const std::vector<TransformSpec>& specs, const RowsInfo& rows,
                                       const Resources& resources);

}  // namespace kith
