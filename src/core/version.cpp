#include <kith/version.hpp>

namespace kith {

// KITH_VERSION is that of the build, which names the library's file.
static_assert(std::string_view(KITH_VERSION) == KITH_VERSION_STRING, "kith/version.h and CMakeLists.txt must agree");
static_assert(std::string_view(KITH_VERSION).starts_with(static_cast<char>('0' + KITH_VERSION_MAJOR)));

std::string_view version() { return KITH_VERSION_STRING; }

}  // namespace kith
