// kith range: all neighbours within a radius, from files to files.
#pragma once

#include <kith/range_search.hpp>

#include "commands.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <string>

namespace kith::cli {

struct RangeOptions {
  std::string base;
  std::string queries;
  std::string filter;  // empty: all rows
  std::string out_offsets;
  std::string out_ids;
  std::string out_distances;  // may be empty
  bool without_self = false;  // query q does not find row q
  RangeParams params;
};

Report run_range(const RangeOptions& options, const RunOptions& run);

void offer_range(Commands& commands);

}  // namespace kith::cli
