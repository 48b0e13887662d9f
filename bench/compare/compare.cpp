// Kith's main calls on one device; compare.py says which a change has made slower (README.md).
#include "compare/cases.hpp"

namespace {

const bench::Registered known({
    .name = "compare",
    .about = "Kith's main calls, a line of JSON for each; bench/compare says which became slower",
    .cases =
        [](const bench::Place& place, std::vector<Case>& cases) -> std::shared_ptr<void> {
      const auto machine = std::make_shared<Machine>(place.cuda, place.threads);
      add_search_cases(*machine, cases);
      add_training_cases(*machine, cases);
      add_graph_cases(*machine, cases);
      return machine;
    },
});

}  // namespace
