// Additive codes, which are found by local search (LSQ) or along a beam (RQ): what other files of this folder want of
// their encoders.
#pragma once

#include "quantize/additive/additive_encoding.hpp"
#include "quantize/code_encoder.hpp"

namespace kith {

// The local search of a recipe; `how`: as EncodeTask's.
AdditiveEncoding encoding_of(const CodeRecipe& recipe, const LocalSearchEncoding* how);

}  // namespace kith
