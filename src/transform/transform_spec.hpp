// What a transform is to become, before it is trained, and its name in factory strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

// "PCA64", "OPQ16", "OPQ16_64", "RR", "RR64", "Centre", "L2norm", "Pad128"; nothing for any other word.
std::optional<TransformSpec> parse_transform(std::string_view word);
// Divided by commas. InvalidArgument, naming the word, for what is none of these.
std::vector<TransformSpec> parse_transforms(std::string_view words);

// Whether it learns from rows.
bool needs_rows(TransformKind kind);

// How many columns come out of such steps. InvalidArgument where a step cannot make what is asked of it.
int64_t transformed_cols(const TransformSpec& spec, int64_t cols);
int64_t transformed_cols(const std::vector<TransformSpec>& specs, int64_t cols);

}  // namespace kith
