// What a command has to say, in both forms. Commands never print: main does, as --json and --quiet ask.
#pragma once

#include "json_output.hpp"

#include <exception>
#include <string>
#include <vector>

namespace kith::cli {

struct Report {
  std::string text;  // whole lines
  JsonObject json;
  std::vector<std::exception_ptr> failures;  // of parts; what went well is told all the same
};

}  // namespace kith::cli
