// Whether two folders share the space of one file system.
#pragma once

#include <string>

namespace kith {

// False where one of them cannot be looked at.
bool on_the_same_disk(const std::string& a, const std::string& b);

}  // namespace kith
