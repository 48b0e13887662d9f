// kith convert: a file of vectors or ids, or a range of its rows, in another format or dtype. File extensions determine
// the formats.
#pragma once

#include <kith/dtype.hpp>

#include "commands.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace kith::cli {

struct ConvertOptions {
  std::string input;
  std::string output;
  int64_t first = 0;
  int64_t count = -1;          // -1: to the end
  std::optional<DType> dtype;  // of vectors; none: the one of the output's extension, or the input's
  bool whole = false;          // of a table: treat all lines and columns as numbers
};

Report run_convert(const ConvertOptions& options, const RunOptions& run);

void offer_convert(Commands& commands);

}  // namespace kith::cli
