// kith head: some rows of a file, as numbers.
#pragma once

#include "commands.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <cstdint>
#include <string>

namespace kith::cli {

struct HeadOptions {
  std::string file;
  std::string rows = "0:5";  // first:end
  int64_t columns = 12;      // 0: all
};

Report run_head(const HeadOptions& options, const RunOptions& run);

void offer_head(Commands& commands);

}  // namespace kith::cli
