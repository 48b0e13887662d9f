// Writes a graph built from disk to a folder (graph_folder.hpp).
#pragma once

#include <kith/graph_folder.hpp>
#include <kith/metric.hpp>

#include "graph/build/cells_on_disk/cells_on_disk.hpp"
#include "graph/handle/graph_folder.hpp"
#include "graph/handle/graph_output.hpp"

#include <memory>
#include <string>

namespace kith {

class FolderSink final : public GraphSink {
 public:
  // `exact_follows`: if the recall is missed, this graph is discarded.
  FolderSink(const GraphOutputShape& shape, Metric metric, std::string folder, const GraphFolderForm& form,
             bool exact_follows = false)
      : shape_(shape), metric_(metric), folder_(std::move(folder)), form_(form), exact_follows_(exact_follows) {}

  int64_t bytes_beside(const std::string& folder) const override;
  bool takes_distances() const override { return !form_.ids_only; }
  bool is_there() const override { return holds_graph(folder_); }
  void begin() override;
  void append(const NeighborsView& part) override { writer_->append(part); }
  void finish(const GraphReport& report) override;

 private:
  const GraphOutputShape shape_;
  const Metric metric_;
  const std::string folder_;
  const GraphFolderForm form_;
  const bool exact_follows_;
  std::unique_ptr<GraphFolderWriter> writer_;
};

}  // namespace kith
