// kith dedup: groups of near duplicates among the vectors of a file, and the file without them.
#pragma once

#include <kith/near_duplicates.hpp>

#include "commands.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <string>

namespace kith::cli {

struct DedupOptions {
  std::string data;
  std::string out;         // the first row of each group, as vectors; empty: not written
  std::string out_rows;    // their numbers
  std::string out_labels;  // the group of each row
  NearDuplicateParams params;
};

Report run_dedup(const DedupOptions& options, const RunOptions& run);

void offer_dedup(Commands& commands);

}  // namespace kith::cli
