// The Python interpreter for what only the package can do.
#pragma once

#include <cstdlib>
#include <string>

namespace kith::cli {

inline std::string python_program() {
  const char* const named = std::getenv("KITH_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

}  // namespace kith::cli
