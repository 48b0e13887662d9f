#include "graph/lists/build_outcome.hpp"

#include <fmt/format.h>

namespace kith {

void put_outcome(const BuildOutcome& outcome, int64_t control_rows, GraphReport& report) {
  report.rounds = outcome.rounds;
  report.reached = outcome.reached;
  if (outcome.recall) {
    report.recall = GraphRecall{.recall = outcome.recall->recall,
                                .recall_at_10 = outcome.recall->recall_at_10,
                                .standard_error = outcome.recall->error,
                                .rows = control_rows};
  }
}

void warn_if_missed(const GraphReport& report, double wanted, std::string_view advice, const Resources& resources) {
  if (report.reached || !report.recall) return;
  resources.log(LogLevel::warning,
                fmt::format("the graph's recall is about {:.4f} (standard error {:.4f}), below the {} asked for; {}",
                            report.recall->recall, report.recall->standard_error, wanted, advice));
}

}  // namespace kith
