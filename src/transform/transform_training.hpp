// Trains transforms by name, in order: each on rows that passed through those before it.
//
// A sample of the rows is enough. The same rows and seed give the same bytes for any number of threads, memory limit,
// instruction set, place of the rows or device.
#pragma once

#include <kith/resources.hpp>

#include "rows/row_source.hpp"
#include "transform/transform_chain.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kith {

// The specification of a transform before it is trained, and its name in factory strings.
enum class TransformKind : uint8_t {
  pca,              // centred, then to the directions in which rows differ most
  opq,              // rotated for product codes of `parts` parts
  random_rotation,  // lengths kept where columns are
  centring,         // minus the mean
  unit_length,
  padding,  // zeros behind
};

struct TransformSpec {
  TransformKind kind = TransformKind::pca;
  int64_t cols = 0;   // that come out; 0: as many as go in
  int64_t parts = 0;  // opq
  bool for_lists = false;  // opq: codes are those of differences from the centres of lists
};

// "PCA64", "OPQ16", "OPQ16_64", "RR", "RR64", "Centre", "L2norm", "Pad128"; nothing for any other word.
std::optional<TransformSpec> parse_transform(std::string_view word);
// Divided by commas. InvalidArgument, naming the word, for what is none of these.
std::vector<TransformSpec> parse_transforms(std::string_view words);

// Whether it learns from rows.
bool needs_rows(TransformKind kind);

// The number of output columns of such steps. Throws InvalidArgument if a step cannot produce them.
int64_t transformed_cols(const TransformSpec& spec, int64_t cols);
int64_t transformed_cols(const std::vector<TransformSpec>& specs, int64_t cols);

// Throws InvalidArgument for what cannot be trained: columns that a kind cannot make, no rows where some are needed.
TransformChain train_transforms(const std::vector<TransformSpec>& specs, RowSource& rows, uint64_t seed,
                                const Resources& resources);
Footprint transform_training_footprint(const std::vector<TransformSpec>& specs, const RowsInfo& rows,
                                       const Resources& resources);

}  // namespace kith
