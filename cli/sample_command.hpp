// kith sample: makes vectors to try the program with, so that the examples in the documentation run as they are.
#pragma once

#include "commands.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <cstdint>
#include <string>

namespace kith::cli {

struct SampleOptions {
  std::string output;
  int64_t rows = 100'000;
  int64_t cols = 64;
  int64_t clusters = 100;
  uint64_t seed = 0;
};

Report run_sample(const SampleOptions& options, const RunOptions& run);

void offer_sample(Commands& commands);

}  // namespace kith::cli
