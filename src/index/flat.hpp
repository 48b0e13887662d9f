// "Flat": every vector as it is, searched exactly.
#pragma once

#include "index/index_kind.hpp"

#include <memory>

namespace kith {

std::shared_ptr<const IndexKind> make_flat(const IndexParams& params);

}  // namespace kith
