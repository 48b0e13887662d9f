// Transforms by name, trained one after the other: each on rows that went through those before it.
//
// Trained on the host's threads, whichever device will apply them: a sample of the rows is enough, and the matrices are
// as small as vectors are wide. The same rows and seed give the same bytes for any number of threads, memory limit,
// instruction set or place of the rows.
#pragma once

#include <kith/resources.hpp>

#include "quantize/transform_chain.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <vector>

namespace kith {

enum class TransformKind : uint8_t {
  pca,              // centred, then to the directions in which rows differ most
  opq,              // rotated for product codes of `parts` parts
  random_rotation,  // lengths kept where columns are
  centring,         // less the mean
  unit_length,
  padding,  // zeros behind
};

struct TransformSpec {
  TransformKind kind = TransformKind::pca;
  int64_t cols = 0;   // that come out; 0: as many as go in
  int64_t parts = 0;  // opq
};

// Throws InvalidArgument for what cannot be trained: columns that a kind cannot make, no rows where some are needed.
TransformChain train_transforms(const std::vector<TransformSpec>& specs, RowSource& rows, uint64_t seed,
                                const Resources& resources);

// How many columns come out, checked as train_transforms does it but without rows.
int64_t transformed_cols(const std::vector<TransformSpec>& specs, int64_t cols);
// Whether rows are needed.
bool needs_rows(TransformKind kind);

}  // namespace kith
