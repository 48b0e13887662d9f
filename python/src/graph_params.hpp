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
std::optional<T> value_of(const nb::dict& asked, const char* name) {
  if (!asked.contains(name) || asked[name].is_none()) return std::nullopt;
  return nb::cast<T>(asked[name]);
}

inline void put_given(const nb::dict& asked, KnnGraphParams& params) {
  params.recall = value_of<double>(asked, "recall").value_or(params.recall);
  params.seed = value_of<uint64_t>(asked, "seed").value_or(params.seed);
  params.cells = value_of<int64_t>(asked, "cells");
  params.probes = value_of<int64_t>(asked, "probes");
  if (const auto start = value_of<std::string>(asked, "start")) params.start = parse_graph_start(*start);
  params.samples = value_of<int64_t>(asked, "samples");
  params.list_length = value_of<int64_t>(asked, "list_length");
  params.iterations = value_of<int64_t>(asked, "iterations");
  params.delta = value_of<double>(asked, "delta");
  if (const auto update = value_of<std::string>(asked, "update")) params.update = parse_graph_update(*update);
  params.shards = value_of<int64_t>(asked, "shards");
}

inline GraphMergeParams merge_params(const nb::dict& asked, bool check_finite) {
  GraphMergeParams params;
  params.recall = value_of<double>(asked, "recall").value_or(params.recall);
  params.seed = value_of<uint64_t>(asked, "seed").value_or(params.seed);
  params.samples = value_of<int64_t>(asked, "samples");
  params.list_length = value_of<int64_t>(asked, "list_length");
  params.iterations = value_of<int64_t>(asked, "iterations");
  params.delta = value_of<double>(asked, "delta");
  params.check_finite = check_finite;
  return params;
}

}  // namespace kith::python
