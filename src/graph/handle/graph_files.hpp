// Reads or maps the two arrays of a graph from their files.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <string>

namespace kith {

// Files with the layout of a graph are mapped; under a limit on host memory they are read, unless `always`.
enum class GraphMapping : uint8_t { without_limit, always };

KnnGraph load_graph_files(const std::string& ids, const std::string& distances, Metric metric, GraphMapping mapping,
                          const Resources& resources);

}  // namespace kith
