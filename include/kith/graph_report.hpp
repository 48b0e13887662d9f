// How a k-NN graph was built and how good it is: method and parameters, estimated recall, what each round did, time and
// memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kith {

struct GraphParameter {
  std::string name;
  std::variant<bool, int64_t, double, std::string> value;
};

// The share of true neighbours in the graph, measured on a sample of rows by exact search.
struct GraphRecall {
  double recall = 0;          // of all k neighbours
  double recall_at_10 = 0;    // of the 10 nearest, or of all k if k is smaller
  double standard_error = 0;  // of `recall`; 0 if all rows were measured
  int64_t rows = 0;           // measured rows
};

// One round of an iterative method.
struct GraphRound {
  std::optional<double> recall;  // estimated after the round, if it was
  double phi = 0;                // the sum of all distances in the lists, equation 3 of GNND
  int64_t updates = 0;           // list entries that changed
  int64_t comparisons = 0;       // distances computed
  double seconds = 0;
};

// What the method `cells` was predicted to need for the recall, from the true neighbours of a sample of rows.
struct GraphForecast {
  int64_t probes = 0;       // cells per row
  int64_t comparisons = 0;  // of all rows together
};

struct GraphReport {
  std::string method = "given";  // "exact", "cells", "nn_descent", ...; "given": built elsewhere, or read from files
  std::vector<GraphParameter> parameters;
  std::optional<GraphRecall> recall;      // none: unknown
  bool reached = true;                    // whether the requested recall was reached
  std::optional<GraphForecast> forecast;  // if cells were considered, even if another method was chosen
  std::vector<GraphRound> rounds;         // of methods with rounds
  double seconds = 0;
  int64_t peak_host_bytes = 0;    // peak of Kith's allocations, the graph included
  int64_t peak_device_bytes = 0;  // the same on a GPU
};

}  // namespace kith
