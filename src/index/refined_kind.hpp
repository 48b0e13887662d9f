// "...,RFlat" and "...,Refine(SQ8)": an index whose candidates are compared again. Beside another index it keeps all
// vectors once more, as they are or as finer codes. A search asks the other for `refine` times k candidates and returns
// the first k of them by (distance to these vectors, row).
#pragma once

#include <kith/index.hpp>

#include "index/index_kind.hpp"
#include "quantize/codec.hpp"

#include <memory>
#include <optional>

namespace kith {

// `code`: what is kept of a vector; none: the vector in its own dtype.
std::shared_ptr<const IndexKind> make_refined_kind(const std::optional<CodeRecipe>& code,
                                                   std::shared_ptr<const IndexKind> inner, const IndexParams& params);

}  // namespace kith
