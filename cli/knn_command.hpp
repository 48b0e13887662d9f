// kith knn: exact nearest neighbours from files to files, both of which may be larger than memory.
#pragma once

#include <kith/knn.hpp>

#include "report.hpp"
#include "run_options.hpp"

#include <string>

namespace kith::cli {

struct KnnOptions {
  std::string base;
  std::string queries;
  std::string filter;   // empty: all rows
  std::string out_ids;  // either may be empty, not both
  std::string out_distances;
  KnnParams params;
};

Report run_knn(const KnnOptions& options, const RunOptions& run);

}  // namespace kith::cli
