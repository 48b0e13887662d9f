// kith plan: what a graph or an index of so many rows will take, without doing it.
#pragma once

#include <kith/work_plan.hpp>

#include "commands.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <string>

namespace kith::cli {

struct PlanOptions {
  std::string data;  // the file or files that rows, columns and dtype are taken from; empty: they are given
  double rows = 0;   // 1e9 is a number of rows
  PlanQuestion question;
};

Report run_plan(const PlanOptions& options, const RunOptions& run);

void offer_plan(Commands& commands);

}  // namespace kith::cli
