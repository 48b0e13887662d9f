// The version of this copy of Kith.
#pragma once

#include <kith/export.hpp>

#include <string_view>

namespace kith {

// "0.1.0"
KITH_EXPORT std::string_view version();

}  // namespace kith
