#include <kith/knn_graph.hpp>

#include <kith/error.hpp>
#include <kith/knn.hpp>

#include "core/name_table.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

constexpr NameTable<GraphMethod, 5> kMethods{{{{GraphMethod::automatic, "auto"},
                                               {GraphMethod::exact, "exact"},
                                               {GraphMethod::cells, "cells"},
                                               {GraphMethod::nn_descent, "nn_descent"},
                                               {GraphMethod::ggm, "ggm"}}}};
constexpr NameTable<GraphStart, 3> kStarts{
    {{{GraphStart::automatic, "auto"}, {GraphStart::random, "random"}, {GraphStart::cells, "cells"}}}};
constexpr NameTable<GraphUpdate, 2> kUpdates{{{{GraphUpdate::selective, "selective"}, {GraphUpdate::all, "all"}}}};

// A parameter of another method than the one asked for is an error, and one below its least value too.
template <typename T>
void check_number(std::string_view name, const std::optional<T>& value, T least, T most) {
  if (!value || (*value >= least && *value <= most)) return;
  throw InvalidArgument(fmt::format("{} = {}; allowed are {} to {}", name, *value, least, most));
}

template <typename T>
void check_method(std::string_view name, const std::optional<T>& value, GraphMethod of, GraphMethod asked) {
  if (!value || of == asked) return;
  throw InvalidArgument(
      fmt::format("{} is a parameter of the method {}, and the method is {}; leave it out, or ask for "
                  "method {}",
                  name, name_of(of), name_of(asked), name_of(of)));
}

// For parameters of rounds, which ggm makes too.
template <typename T>
void check_rounds(std::string_view name, const std::optional<T>& value, GraphMethod asked) {
  if (asked != GraphMethod::ggm) check_method(name, value, GraphMethod::nn_descent, asked);
}

}  // namespace

std::string_view name_of(GraphMethod method) { return kMethods.name(method); }
GraphMethod parse_graph_method(std::string_view name) { return kMethods.parse(name, "graph method"); }
std::string_view name_of(GraphStart start) { return kStarts.name(start); }
GraphStart parse_graph_start(std::string_view name) { return kStarts.parse(name, "start of a graph"); }
std::string_view name_of(GraphUpdate update) { return kUpdates.name(update); }
GraphUpdate parse_graph_update(std::string_view name) { return kUpdates.parse(name, "update of a graph"); }

void KnnGraphParams::validate() const {
  constexpr int64_t kMost = INT32_MAX;
  constexpr int64_t kMostSamples = 1024;
  constexpr int64_t kMostIterations = 10000;
  KnnParams{k, metric}.validate();
  if (name_of(method) == "?") throw InvalidArgument(fmt::format("graph method {} is none", static_cast<int>(method)));
  if (!(recall > 0 && recall <= 1)) {
    throw InvalidArgument(fmt::format("recall = {}; it is a share above 0 and up to 1", recall));
  }
  const bool approximate =
      method == GraphMethod::cells || method == GraphMethod::nn_descent || method == GraphMethod::ggm;
  if (recall == 1 && approximate) {
    throw InvalidArgument(
        fmt::format("recall = 1 with the method {}, which cannot promise it; use method exact, or ask "
                    "for less, as 0.999",
                    name_of(method)));
  }
  check_method("cells", cells, GraphMethod::cells, method);
  check_method("probes", probes, GraphMethod::cells, method);
  check_method("start", start, GraphMethod::nn_descent, method);
  check_rounds("samples", samples, method);
  check_rounds("list_length", list_length, method);
  check_rounds("iterations", iterations, method);
  check_rounds("delta", delta, method);
  check_method("update", update, GraphMethod::nn_descent, method);
  check_method("shards", shards, GraphMethod::ggm, method);
  check_number<int64_t>("cells", cells, 1, kMost);
  check_number<int64_t>("probes", probes, 1, kMost);
  check_number<int64_t>("shards", shards, 1, kMost);
  check_number<int64_t>("samples", samples, 1, kMostSamples);
  check_number<int64_t>("iterations", iterations, 1, kMostIterations);
  check_number<double>("delta", delta, 0.0, 1.0);
  if (list_length && (*list_length < k || *list_length > kMost)) {
    throw InvalidArgument(
        fmt::format("list_length = {}; a working list holds at least the k = {} neighbours, and no more than {}",
                    *list_length, k, kMost));
  }
  if (method == GraphMethod::cells && metric != Metric::l2 && metric != Metric::sqeuclidean &&
      metric != Metric::cosine && metric != Metric::inner_product) {
    throw InvalidArgument(fmt::format("the method cells compares by l2, sqeuclidean, cosine and inner_product, and the "
                                      "metric is {}; use method nn_descent",
                                      name_of(metric)));
  }
}

}  // namespace kith
