// The version of Kith: of the library that runs, and (kith/version.h) of the headers, as macros.
#pragma once

#include <kith/export.hpp>
#include <kith/version.h>

#include <string_view>

namespace kith {

// "0.1.0"
KITH_EXPORT std::string_view version();

}  // namespace kith
