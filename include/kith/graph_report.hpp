// How a k-NN graph was made and how good it is: a method's name and parameters, its estimated recall, what each of its
// rounds did, and the time and memory it took.
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

// The share of the true neighbours that were found, measured on some rows whose neighbours were searched exactly.
struct GraphRecall {
  double recall = 0;          // of all k neighbours
  double recall_at_10 = 0;    // of the 10 nearest, or of all where k is smaller
  double standard_error = 0;  // of `recall`; 0 where it is no estimate
  int64_t rows = 0;           // looked at
};

// One round of a method that has rounds.
struct GraphRound {
  std::optional<double> recall;  // estimated after it, where it was
  double phi = 0;                // the sum of all distances in the lists, equation 3 of GNND
  int64_t updates = 0;           // entries of lists that changed
  int64_t comparisons = 0;       // distances computed
  double seconds = 0;
};

// What cells were foreseen to take for the recall, before any pair was compared: by the true neighbours of some rows.
struct GraphForecast {
  int64_t probes = 0;       // of every row
  int64_t comparisons = 0;  // in all
};

struct GraphReport {
  std::string method = "given";  // "exact", "cells", "nn_descent", ...; "given": found elsewhere, read from files
  std::vector<GraphParameter> parameters;
  std::optional<GraphRecall> recall;  // none: unknown
  bool reached = true;                // the recall that was asked for
  std::optional<GraphForecast> forecast;  // where cells were learned, also if another method was sooner
  std::vector<GraphRound> rounds;
  double seconds = 0;
  int64_t peak_host_bytes = 0;    // the most that Kith had allocated for it, the graph included
  int64_t peak_device_bytes = 0;  // the same on a GPU
};

}  // namespace kith
