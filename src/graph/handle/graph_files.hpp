// How the two arrays of a graph come from their files.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <string>

namespace kith {

// Files that lie as a graph does are mapped; under a limit on the host's memory they are read, unless mapped always.
enum class GraphMapping : uint8_t { without_limit, always };

KnnGraph load_graph_files(const std::string& ids, const std::string& distances, Metric metric, GraphMapping mapping,
                          const Resources& resources);

}  // namespace kith
