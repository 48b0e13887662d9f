// What kith_compare measures: cases, each a call that is repeated on data that was prepared once.
#pragma once

#include "compare/data.hpp"

#include <functional>
#include <string>
#include <vector>

struct Case {
  std::string table;
  std::string name;
  // Makes what the call needs; the call keeps it alive.
  std::function<std::function<void()>()> prepare;
};

// Each appends the cases of its tables; sizes are those of the machine's device.
void add_search_cases(const Machine& machine, std::vector<Case>& cases);    // exact, selection, lists
void add_training_cases(const Machine& machine, std::vector<Case>& cases);  // kmeans, quantizers, lsq
void add_graph_cases(const Machine& machine, std::vector<Case>& cases);     // graphs
