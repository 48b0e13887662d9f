// kith explore: a page in the browser, served by the Python package. Replaces this process by Python.
#pragma once

#include "commands.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kith::cli {

struct ExploreOptions {
  std::string collection;
  std::string vectors;
  std::string items;
  std::string labels;
  std::string text;
  std::vector<std::string> graph;
  std::string xy;
  std::string shape;
  std::string metric;
  std::string device;
  std::string host;
  int64_t port = 0;
  bool no_browser = false;
};

// The command line for Python: `python -c … --vectors x.npy …`.
std::vector<std::string> explore_arguments(const ExploreOptions& options, const std::string& python);

void offer_explore(Commands& commands);

}  // namespace kith::cli
