// Checks of the graphs and rows to be merged, extended or refined, and the rows of two parts as a single
// collection.
#pragma once

#include <kith/error.hpp>
#include <kith/graph_merge.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/footprint.hpp"
#include "graph/handle/graph_output.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace kith {

// Whether a graph's distances must be those of its rows, to the last bit or as others round them, or may differ, such
// as those of compressed rows.
enum class PartDistances : uint8_t { as_computed, of_rows, any };

// Thrown for a graph that was built from vectors other than its rows.
class OtherVectors : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

// Checks that the graph and its rows have equal sizes, neighbours, and a metric that fits.
void check_part_shape(const GraphPart& part, std::string_view what);
// Checks that the graph is valid and belongs to these rows, by recomputing the distances of some edges. Both may be in
// any memory.
void check_part(const GraphPart& part, std::string_view what, PartDistances distances, const Resources& resources);
// The same for rows in files.
void check_part(const GraphOfFile& part, std::string_view what, PartDistances distances, const Resources& resources);
// Checks that parts can be merged: equal k, metric, dimension and dtype.
void check_same(const GraphPart& a, const GraphPart& b);

// The length of working lists when merging graphs of k neighbours.
int64_t merge_list_length(const GraphMergeParams& params, int64_t k);
// Two sets of rows as a single matrix: a view if the second directly follows the first in memory, else a copy on the
// device that uses it. Rows used by the CPU must be in host memory; others may be anywhere.
class JoinedRows {
 public:
  JoinedRows(const MatrixView& a, const MatrixView& b, Device device, const Resources& resources);

  const MatrixView& view() const { return view_; }

 private:
  MatrixBuffer memory_;
  std::shared_ptr<std::byte> device_memory_;
  MatrixView view_;
};

}  // namespace kith
