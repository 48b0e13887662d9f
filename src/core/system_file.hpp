// The text of a file by which the system tells of itself (/proc, /sys).
//
// Read by system calls: streams parse numbers through facets of a locale, and where a process has two copies of the C++
// library, one of them linked into a module, those of the other copy may answer.
#pragma once

#include <string>

namespace kith {

// Empty where it cannot be read.
std::string system_text(const std::string& path);

}  // namespace kith
