// kith eval: 1-recall@R and k-recall@k of found neighbours, compared with the true ones.
#pragma once

#include "commands.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kith::cli {

struct EvalOptions {
  std::string found;
  std::string truth;
  std::optional<int64_t> k;  // none: the columns of found, at most those of truth
  std::vector<int64_t> r;    // empty: 1, 10 and 100 up to the columns of found
};

Report run_eval(const EvalOptions& options, const RunOptions& run);

void offer_eval(Commands& commands);

}  // namespace kith::cli
