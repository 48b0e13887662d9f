// Writes a graph's folder in blocks of rows. Until finish() the folder holds no graph.
#pragma once

#include <kith/graph_folder.hpp>
#include <kith/graph_report.hpp>
#include <kith/neighbors.hpp>
#include <kith/vector_file.hpp>

#include "io/container/xxh3.hpp"
#include "io/matrix_file.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace kith {

// Whether the folder holds a finished graph.
bool holds_graph(const std::string& folder);
// Removes a graph, what a killed process left of building it, and the folder, unless other files or running work are in
// it.
void remove_graph_folder(const std::string& folder);

// Where the steps of building it are kept, unless another folder is named.
inline std::string own_steps_folder(const std::string& folder) { return folder + "/work"; }
// Where those of the exact graph are kept that follows cells from disk.
inline std::string ending_steps_folder(const std::string& steps) { return steps + ".exact"; }

class GraphFolderWriter {
 public:
  // Creates the folder if needed. An existing graph in it is kept until finish().
  GraphFolderWriter(const std::string& folder, int64_t rows, int64_t k, const GraphFolderForm& form = {});

  // Appends the neighbours of the next rows, in host memory; with ids only distances may be null.
  void append(const NeighborsView& part);
  void finish(Metric metric, const GraphReport& report);

 private:
  void write_ids(const NeighborsView& part);

  const std::string folder_;
  const int64_t rows_;
  const int64_t k_;
  const GraphFolderForm form_;
  MatrixFileWriter ids_;
  std::optional<VectorFileWriter> distances_;
  Xxh3 id_hash_;
  Xxh3 distance_hash_;
};

}  // namespace kith
