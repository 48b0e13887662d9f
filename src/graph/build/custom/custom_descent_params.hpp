// Settings for a graph with a user-defined metric, on any device: NN-Descent from random rows.
#pragma once

#include <kith/custom_metric.hpp>
#include <kith/knn_graph.hpp>

#include "exact/search_checks.hpp"
#include "graph/build/exact/exact_graph.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/handle/graph_output.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace kith {

// Smaller is nearer, as for every user-defined metric.
inline constexpr Metric kLikeCustom = Metric::l1;

inline int64_t custom_list_length(const CustomGraphParams& params) {
  return params.list_length.value_or(default_list_length(params.k));
}

// Checks of the arguments, for any device.
inline void check_custom_graph(const MatrixView& x, const CustomGraphParams& params) {
  params.validate();
  check_graph_size(x.rows(), params.k);
  check_knn(RowsInfo(x), RowsInfo(x), {params.k, kLikeCustom});
  refuse_f64("vectors", x.dtype());
}

// Also writes the parameters to the report.
inline DescentParams custom_descent_params(const CustomGraphParams& params, GraphReport& report) {
  const int64_t length = custom_list_length(params);
  const DescentParams rounds = descent_params(params, kLikeCustom, params.k, length);
  report.parameters = {{"recall", params.recall}, {"seed", static_cast<int64_t>(params.seed)}};
  put_rounds(rounds, length, report);
  report.parameters.push_back({"update", std::string(name_of(params.update))});
  return rounds;
}

// fill(view, report, resources) builds the graph and its report; time and memory are measured here.
template <typename Fill>
CustomGraph measured_custom(const MatrixView& x, const CustomGraphParams& params, const Resources& resources,
                            const Fill& fill) {
  std::optional<Neighbors> neighbors;
  GraphReport report = measured(resources, [&](const Resources& counted) {
    neighbors.emplace(x.rows(), params.k, counted);
    GraphReport told;
    told.method = name_of(GraphMethod::nn_descent);
    fill(neighbors->view(), told, counted);
    return told;
  });
  return {std::move(*neighbors), std::move(report)};
}

inline constexpr const char* kCustomAdvice = "allow longer lists, more samples or iterations";

}  // namespace kith
