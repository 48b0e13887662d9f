// The result of a command, as text and JSON. Commands never print; main does, according to --json and --quiet.
#pragma once

#include "json_output.hpp"

#include <exception>
#include <string>
#include <vector>

namespace kith::cli {

struct Report {
  std::string text;  // whole lines
  JsonObject json;
  std::vector<std::exception_ptr> failures;  // of parts; the rest is reported all the same
};

}  // namespace kith::cli
