// kith knn: exact nearest neighbours from files to files, both of which may be larger than memory.
#pragma once

#include <kith/knn.hpp>

#include "commands.hpp"
#include "neighbor_files.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <string>

namespace kith::cli {

struct KnnOptions {
  std::string base;
  std::string queries;
  std::string filter;  // empty: all rows
  NeighborPaths out;
  KnnParams params;
};

Report run_knn(const KnnOptions& options, const RunOptions& run);

void offer_knn(Commands& commands);

}  // namespace kith::cli
