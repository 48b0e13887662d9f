// What a graph by a metric of the user's is built with, on any device: NN-Descent from random rows.
#pragma once

#include <kith/custom_metric.hpp>
#include <kith/knn_graph.hpp>

#include "exact/search_checks.hpp"
#include "graph/exact_graph.hpp"
#include "graph/method_choice.hpp"
#include "graph/nn_descent/descent_wish.hpp"

#include <cstdint>
#include <string>

namespace kith {

// Smaller is nearer, as for every metric of a user's.
inline constexpr Metric kLikeCustom = Metric::l1;

inline int64_t custom_list_length(const CustomGraphParams& params) {
  return params.list_length.value_or(default_list_length(params.k));
}

// What is wrong at first sight, on any device.
inline void check_custom_graph(const MatrixView& x, const CustomGraphParams& params) {
  params.validate();
  check_graph_size(x.rows(), params.k);
  check_knn(RowsInfo(x), RowsInfo(x), {params.k, kLikeCustom});
}

// The report gets the parameters.
inline DescentWish custom_wish(const CustomGraphParams& params, GraphReport& report) {
  const int64_t length = custom_list_length(params);
  const DescentWish wish = descent_wish(params, kLikeCustom, params.k, length);
  report.parameters = {{"recall", params.recall},
                       {"seed", static_cast<int64_t>(params.seed)},
                       {"samples", wish.rules.samples},
                       {"list_length", length},
                       {"iterations", wish.iterations},
                       {"delta", wish.delta},
                       {"update", std::string(name_of(params.update))}};
  return wish;
}

// Where all others fit a list.
inline GraphRecall exact_recall(int64_t rows) {
  return {.recall = 1, .recall_at_10 = 1, .standard_error = 0, .rows = rows};
}

inline constexpr const char* kCustomAdvice = "allow longer lists, more samples or iterations";

}  // namespace kith
