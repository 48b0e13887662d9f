// The version of the running library; that of the headers is in the macros of kith/version.h.
#pragma once

#include <kith/export.hpp>
#include <kith/version.h>

#include <string_view>

namespace kith {

// "0.1.0"
KITH_EXPORT std::string_view version();

}  // namespace kith
