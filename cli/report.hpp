// What a command has to say, in both forms. Commands never print: main does, as --json and --quiet ask.
#pragma once

#include "json_output.hpp"

#include <string>

namespace kith::cli {

struct Report {
  std::string text;  // whole lines
  JsonObject json;
};

}  // namespace kith::cli
