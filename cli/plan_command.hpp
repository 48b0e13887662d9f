// kith plan: predicts the memory, disk space and time of building a graph or an index.
#pragma once

#include <kith/work_plan.hpp>

#include "commands.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <string>

namespace kith::cli {

struct PlanOptions {
  std::string data;  // files from which to take rows, columns and dtype; empty: these are given
  double rows = 0;   // 1e9 is a number of rows
  PlanQuestion question;
};

Report run_plan(const PlanOptions& options, const RunOptions& run);

void offer_plan(Commands& commands);

}  // namespace kith::cli
