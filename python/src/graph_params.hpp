// What the package wants of a graph's method, as the library's parameters. What is None follows from the problem.
#pragma once

#include <kith/graph_merge.hpp>
#include <kith/knn_graph.hpp>

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>

namespace kith::python {

namespace nb = nanobind;

// A value of a dict of the package's, or none.
template <typename T>
std::optional<T> wished(const nb::dict& wish, const char* name) {
  if (!wish.contains(name) || wish[name].is_none()) return std::nullopt;
  return nb::cast<T>(wish[name]);
}

inline void put_wish(const nb::dict& wish, KnnGraphParams& params) {
  params.recall = wished<double>(wish, "recall").value_or(params.recall);
  params.seed = wished<uint64_t>(wish, "seed").value_or(params.seed);
  params.cells = wished<int64_t>(wish, "cells");
  params.probes = wished<int64_t>(wish, "probes");
  if (const auto start = wished<std::string>(wish, "start")) params.start = parse_graph_start(*start);
  params.samples = wished<int64_t>(wish, "samples");
  params.list_length = wished<int64_t>(wish, "list_length");
  params.iterations = wished<int64_t>(wish, "iterations");
  params.delta = wished<double>(wish, "delta");
  if (const auto update = wished<std::string>(wish, "update")) params.update = parse_graph_update(*update);
  params.shards = wished<int64_t>(wish, "shards");
}

inline GraphMergeParams merge_wish(const nb::dict& wish, bool check_finite) {
  GraphMergeParams params;
  params.recall = wished<double>(wish, "recall").value_or(params.recall);
  params.seed = wished<uint64_t>(wish, "seed").value_or(params.seed);
  params.samples = wished<int64_t>(wish, "samples");
  params.list_length = wished<int64_t>(wish, "list_length");
  params.iterations = wished<int64_t>(wish, "iterations");
  params.delta = wished<double>(wish, "delta");
  params.check_finite = check_finite;
  return params;
}

}  // namespace kith::python
