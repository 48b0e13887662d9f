// The output files of a search, one for ids and one for distances. They are created before it starts, so that it does
// not run in vain if they cannot be written.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/vector_file.hpp>

#include "exit_codes.hpp"
#include "output_paths.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kith::cli {

struct NeighborPaths {
  std::string ids;  // either may be empty, not both
  std::string distances;

  // UsageError if there is none.
  std::vector<NamedPath> outputs(const std::string& command) const {
    std::vector<NamedPath> outputs;
    if (!ids.empty()) outputs.push_back({"--out-ids", ids});
    if (!distances.empty()) outputs.push_back({"--out-distances", distances});
    if (outputs.empty()) throw UsageError(command + " has no output; give --out-ids, --out-distances or both");
    return outputs;
  }
};

class NeighborFiles {
 public:
  NeighborFiles(const NeighborPaths& paths, int64_t queries, int64_t k) : k_(k) {
    if (!paths.ids.empty()) ids_.emplace(paths.ids, queries, k);
    if (!paths.distances.empty()) distances_.emplace(paths.distances, DType::f32, queries, k);
  }

  void append(const NeighborsView& part) {
    if (ids_) ids_->append(part.ids, part.queries);
    if (distances_) distances_->append(MatrixView(part.distances, part.queries, k_));
  }

  // Syncs both files first, which can fail on a full disk, so that both are replaced or neither.
  void commit() {
    if (ids_) ids_->sync();
    if (distances_) distances_->sync();
    if (ids_) ids_->commit();
    if (distances_) distances_->commit();
  }

 private:
  int64_t k_;
  std::optional<IdFileWriter> ids_;
  std::optional<VectorFileWriter> distances_;
};

}  // namespace kith::cli
