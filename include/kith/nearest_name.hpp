// The known name that a misspelt one means: "euclidian" is euclidean, "--bases" is --base.
#pragma once

#include <kith/export.hpp>

#include <span>
#include <string_view>

namespace kith {

// The first of the names with the fewest letters to change, add or drop, a third of its letters at most; empty for none.
KITH_EXPORT std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);

}  // namespace kith
