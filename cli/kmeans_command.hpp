// kith kmeans: centres of the vectors in a file, which may be larger than memory, and each vector's label.
#pragma once

#include <kith/kmeans.hpp>

#include "commands.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <string>

namespace kith::cli {

struct KMeansOptions {
  std::string data;
  std::string weights;  // may be empty
  std::string given;    // centres to begin with; may be empty
  std::string out;
  std::string out_labels;  // may be empty
  KMeansParams params;
};

Report run_kmeans(const KMeansOptions& options, const RunOptions& run);

void offer_kmeans(Commands& commands);

}  // namespace kith::cli
