// Formats rates per second for people: 30,750 and 0.42, never 3.075e+04.
#pragma once

#include <string>

namespace kith::cli {

std::string rate_text(double per_second);

}  // namespace kith::cli
