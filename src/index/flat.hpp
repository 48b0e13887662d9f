// "Flat": every vector as it is, searched exactly.
#pragma once

#include "index/index_kind.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

std::shared_ptr<const IndexKind> make_flat(const std::vector<int64_t>& numbers, const IndexParams& params);

}  // namespace kith
