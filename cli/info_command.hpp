// kith info: about this program and machine, or about files.
#pragma once

#include "commands.hpp"
#include "report.hpp"

#include <string>
#include <vector>

namespace kith::cli {

struct InfoOptions {
  std::vector<std::string> files;  // none: the program and the machine
};

Report run_info(const InfoOptions& options);

void offer_info(Commands& commands);

}  // namespace kith::cli
