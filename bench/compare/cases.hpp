// The cases of the benchmark `compare`.
#pragma once

#include "compare/data.hpp"
#include "driver/benchmark.hpp"

#include <string>
#include <vector>

namespace bench = kith::bench;
using bench::Case;

// Each appends the cases of its tables; sizes are those of the machine's device.
void add_search_cases(const Machine& machine, std::vector<Case>& cases);    // exact, selection, lists
void add_training_cases(const Machine& machine, std::vector<Case>& cases);  // kmeans, quantizers, lsq
void add_graph_cases(const Machine& machine, std::vector<Case>& cases);     // graphs
