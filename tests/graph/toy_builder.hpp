// A whole builder of graphs: every row is compared with the rows that stand near it in the order of one column, one
// round for each column. It needs the lists alone, on whichever device they are.
#pragma once

#include <kith/knn_graph.hpp>

#include "core/typed_row.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/lists/graph_lists.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace kith {

// `x` is f32, on the host; so is the graph.
inline KnnGraph graph_by_columns(const MatrixView& x, int64_t k, int64_t window, const Resources& resources) {
  const int64_t rows = x.rows();
  return make_graph({rows, k}, Metric::l2, resources, [&](const NeighborsView& out, const Resources& counted) {
    GraphReport report;
    report.method = "columns";
    with_graph_lists(x, {.metric = Metric::l2, .k = k}, counted, [&](GraphLists& lists) {
      lists.begin(k);
      BuildOutcome outcome;
      std::vector<int64_t> order(static_cast<size_t>(rows));
      std::vector<int64_t> near(static_cast<size_t>(rows * 2 * window));
      for (int64_t col = 0; col < x.cols(); ++col) {
        const auto value = [&](int64_t row) { return typed_row<float>(x, row)[col]; };
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return value(a) < value(b); });
        for (int64_t at = 0; at < rows; ++at) {
          int64_t* const mine = near.data() + order[static_cast<size_t>(at)] * 2 * window;
          int64_t count = 0;
          for (int64_t other = std::max<int64_t>(at - window, 0); other < std::min(at + window + 1, rows); ++other) {
            if (other != at) mine[count++] = order[static_cast<size_t>(other)];
          }
          std::fill(mine + count, mine + 2 * window, -1);
        }
        lists.add_rows({near.data(), rows, 2 * window, 2 * window});
        const ListSurvey survey = lists.survey(k, Flags::set);
        outcome.rounds.push_back({{}, survey.phi, survey.updates, rows * 2 * window, 0});
      }
      lists.survey(k, Flags::clear);
      outcome.recall = lists.measure();
      put_outcome(outcome, lists.control_rows(), report);
      lists.write_all(out);
    });
    return report;
  });
}

}  // namespace kith
